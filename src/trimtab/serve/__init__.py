"""`trimtab serve`: studies over HTTP, and a dashboard. Needs the extra `serve`.

app           the ASGI application
server        workers, listening address, logging; settings, demo
http/         authentication, errors, limits, logs and metrics
api/          models, ask and tell, a cache of studies; routes/, one module per resource
dashboard/    HTML pages, with templates/ and static/
"""
