"""The base classes of `Study`: reading, writing, changing settings."""
