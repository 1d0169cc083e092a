"""The API under /v1: models, ask and tell, JSON representations, routes."""
