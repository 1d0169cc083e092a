"""Small helpers that know nothing of tuning: files, text, logs, checksums, optional dependencies."""
