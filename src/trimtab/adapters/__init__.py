"""trimtab where its users are: one short module for each host, imported when it is asked for, an extra each.

`trimtab.adapters.bluesky`, `.gest` (Xopt, Badger, blop, libEnsemble), `.gymnasium`, `.optax`, `.optuna`, `.scipy` and
`.torch`. docs/adapters has a page on each, with what it keeps of the promises: one query per round, every query
feasible, resumed bit by bit.
"""
