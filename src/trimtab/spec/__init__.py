"""The definition of a study: guard settings, limits on other numbers, stored knobs, and present settings."""
