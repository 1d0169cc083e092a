"""What a person says of a study: guard rails, constraints, knobs as stored, and settings as they are now."""
