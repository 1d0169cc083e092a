"""The default method: a plane fitted to the values, with an adaptive pace and probe width.

Start with `rule`, then read `fit` and `pace`; `doubts` has the special rounds, `following` the moving optimum. The
configuration is `trimtab.estimators.Plane` and `trimtab.steps.Adaptive`; docs/auto.md derives the equations.
"""
