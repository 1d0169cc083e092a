"""Simulations: methods on a problem in lanes, and the record they leave."""
