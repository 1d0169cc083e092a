"""The API under /v1: models, rules of ask and tell, JSON views, routes."""
