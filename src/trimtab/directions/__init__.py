"""Laws of the probing direction u, each a pure function of (seed, lane, trial)."""

from trimtab.directions.gaussian import Gaussian
from trimtab.directions.orthogonal import Orthogonal
from trimtab.directions.paired import Paired
from trimtab.directions.rademacher import Rademacher
from trimtab.directions.sphere import Sphere
from trimtab.directions.stream import Stream, Streams

__all__ = ["Gaussian", "Orthogonal", "Paired", "Rademacher", "Sphere", "Stream", "Streams"]
