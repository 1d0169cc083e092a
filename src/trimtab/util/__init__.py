"""General helpers: files, text, logs, checksums, optional dependencies."""
