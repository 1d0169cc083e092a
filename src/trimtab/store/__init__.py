"""Persistent storage of studies: tables and checksums, SQLite and PostgreSQL, filters, approvals, retries."""
