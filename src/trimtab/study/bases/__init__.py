"""The base classes that `Study` is made of: read, write, change settings."""
