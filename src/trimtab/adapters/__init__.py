"""trimtab where its users are: one short module for each host, imported when it is asked for, an extra each.

`trimtab.adapters.gest` (Xopt, Badger, blop, libEnsemble), `.gymnasium`, `.optuna`, `.scipy`. docs/adapters has a page
on each, with what it keeps of the promises: one query per round, every query feasible, resumed bit by bit.
"""
