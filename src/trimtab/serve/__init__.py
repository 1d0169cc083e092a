"""`trimtab serve`: live studies over HTTP, and a dashboard, on the same store. Needs the extra `serve`.

app        the application: what it is made of, in which order
fleet      studies on rows: load, change, compare and set, try again; a small cache by sequence
studies, trials, actions, events, health      the routes of the API
pages, templates/, static/                    sign-in and the dashboard
access, problems, limits, observing           who may, what is answered otherwise, how much, what is logged
"""
