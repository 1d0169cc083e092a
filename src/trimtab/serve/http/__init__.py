"""HTTP concerns shared by the API and the dashboard: authentication, limits, errors, logs and metrics."""
