"""HTTP, whatever is served: sign-in and tokens, limits, errors, what is logged and counted."""
