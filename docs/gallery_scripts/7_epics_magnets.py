"""
Two EPICS magnets through Bluesky
=================================

Two corrector magnets whose best currents drift, kept in place through EPICS: a ``softioc`` IOC in a process of its own,
Channel Access, ophyd signals and :doc:`the Bluesky plan </adapters/bluesky>`. One noisy number a round, the beam loss;
every document is validated.

EPICS needs an environment of its own. ``make docs-all`` runs this page there, ``make docs`` shows a stored run.
Run it yourself with
``.venv-hosts/bin/python examples/epics_magnets.py``.
"""

from hosted import run  # docs/_ext/hosted.py: runs the script below in the environment of the hosts

run("epics_magnets")

# %%
# The script:
#
# .. literalinclude:: /../examples/epics_magnets.py
#    :language: python
