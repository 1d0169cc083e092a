"""`trimtab serve`: live studies over HTTP, and a dashboard, on the same store. Needs the extra `serve`.

app        the application: what it is made of, in which order
server, settings, demo     how it is started
http/         sign-in and tokens, errors, limits, what is logged
api/          models, the rules of ask and tell, a small cache of studies; routes/, one module a thing
dashboard/    pages for people, with templates/ and static/
"""
