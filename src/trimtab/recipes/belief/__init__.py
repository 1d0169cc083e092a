"""The belief: a bank of filters of level, slope, curvature and drift near the operating point.

Read `model`, then `bank`, `decision` and `rule`. Equation numbers are those of docs/belief.md.
"""
