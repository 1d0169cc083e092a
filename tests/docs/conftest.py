"""`pages` is beside the tests; pytest imports tests by their path, so it has to be found."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
