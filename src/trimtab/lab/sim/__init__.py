"""Simulations: run methods on a problem, in lanes, and record the results."""
