"""How a study does: running figures, savings, and the baseline that they are measured against."""
