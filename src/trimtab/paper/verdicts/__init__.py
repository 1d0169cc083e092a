"""A verdict on each claim of the paper."""
