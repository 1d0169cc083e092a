"""Named parameters (knobs) ↔ coordinates: the description of a space for the tuner, studies and adapters.

The method works on coordinates. A number has one, its position z ∈ [0, 1] in the range, linear or logarithmic; a choice
has one weight per option, on a simplex; a fixed knob (low == high) has none. Discrete knobs are rounded at random,
each by its own draw, so that the expectation equals the coordinates:

* whole numbers, grids and switches: rounded up with the probability of the fraction, E[rounded] = the exact value;
* choices: option i with the probability of its weight w_i.

The expected measurement is thus f̃, the multilinear interpolation of f between valid settings: E[y·u] is an unbiased
smoothed gradient of f̃, and f̃ has the same minimum as f, at a valid setting. Rounding to the nearest setting instead
would hide every probe shorter than half a unit. The draws are a function of (seed, trial), like the directions: asking
again, even after a crash, gives the same setting.
"""

from trimtab.knobs.knob import Knob, Level, knob_fields
from trimtab.knobs.space import Knobs, Setting
from trimtab.recipes import SHARE

__all__ = ["SHARE", "Knob", "Knobs", "Level", "Setting", "knob_fields"]
