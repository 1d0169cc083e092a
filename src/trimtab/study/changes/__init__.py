"""Changes of a running study: which are allowed, how they are queued, who paused it."""
