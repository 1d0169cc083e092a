"""Many cells in parallel, each computed once: sweep, executors, cache."""
