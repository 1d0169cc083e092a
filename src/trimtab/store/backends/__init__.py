"""The databases behind a store: one protocol, SQLite and PostgreSQL."""
