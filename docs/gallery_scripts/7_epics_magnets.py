"""
Two EPICS magnets through Bluesky
=================================

Two corrector magnets whose best currents drift, kept in place through EPICS: a ``softioc`` IOC in a process of its own,
Channel Access, ophyd signals and :doc:`the Bluesky plan </adapters/bluesky>`. One noisy number a round, the beam loss;
every document is validated.

EPICS is not installed where the site is built: this page was not run with it. The picture is what ``make pictures``
drew with the same script in the environment of the hosts, ``.venv-hosts/bin/python examples/epics_magnets.py``.

.. image:: /pictures/epics_magnets.png
   :alt: Both magnets follow their drifting optimum; the loss stays near its floor

.. literalinclude:: /../examples/epics_magnets.py
   :language: python
"""

# sphinx_gallery_thumbnail_path = 'pictures/epics_magnets.png'
