"""The contract, as functions that any method, domain or problem must pass."""
