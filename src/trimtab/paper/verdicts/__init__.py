"""Verdicts on the claims of the paper."""
