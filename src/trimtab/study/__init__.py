"""A study: its position, the changes that move it, and the class `Study` over a store."""
