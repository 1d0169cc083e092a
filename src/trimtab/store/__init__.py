"""Where studies are kept: rows and their seals, SQLite and PostgreSQL, filters, approvals, retries."""
