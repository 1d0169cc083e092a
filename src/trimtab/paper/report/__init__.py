"""The report: its figures, its text and its page."""
