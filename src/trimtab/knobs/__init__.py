"""Named parameters ↔ coordinates: one description of a space, for the tuner, studies and adapters alike.

The method works on coordinates. A number has one, its share z ∈ [0, 1] of the range, linear or logarithmic; a choice
has one weight per possibility, on a simplex; a fixed knob (low == high) has none. What a system cannot take in between
is drawn, each knob by its own draw, so that the expectation is what the coordinates say:

* whole numbers, grids and switches: up with the probability of the fraction, E[rounded] = the wanted value;
* choices: possibility i with the probability of its weight w_i.

So the measurement is in expectation f̃, the multilinear interpolation of f between what can be set: E[y·u] is the
smoothed gradient of f̃ without bias, and f̃ is least where f is, at a setting that exists. Taking the nearest instead
would hide every probe shorter than half a unit. The draws are a function of (seed, trial), like the directions: asking
again, also after a crash, gives the same setting.
"""

from trimtab.knobs.knob import Knob, Level, knob_fields
from trimtab.knobs.space import Knobs, Setting
from trimtab.recipes import SHARE

__all__ = ["SHARE", "Knob", "Knobs", "Level", "Setting", "knob_fields"]
