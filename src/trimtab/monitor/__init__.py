"""Monitoring of a study: diagnostics, savings, and the baseline that savings are measured against."""
