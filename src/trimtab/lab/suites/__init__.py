"""Fixed lists of cells on which methods are judged."""
