"""Studies: the state of one, changes to its settings, and the class `Study` on top of a store."""
