"""Changes to a running study: the rules, requests to its holder, and pausing."""
