"""The knobs of a study are those of `trimtab.knobs`."""

from trimtab.knobs import Knob, Knobs, Setting, rounding

__all__ = ["Knob", "Knobs", "Setting", "rounding"]
