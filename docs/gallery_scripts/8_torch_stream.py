"""
A PyTorch model on a drifting stream
====================================

A network keeps up with data whose law turns while it runs, from the values of the loss alone: forward passes, no
backward pass, by :doc:`the optimizer for PyTorch </adapters/torch>`. Adam, which has gradients, does better with the
same passes: where you have gradients, use them.

PyTorch needs an environment of its own. ``make docs-all`` runs this page there, ``make docs`` shows a stored run.
Run it yourself with
``.venv-hosts/bin/python examples/torch_stream.py``.
"""

from hosted import run  # docs/_ext/hosted.py: runs the script below in the environment of the hosts

run("torch_stream")

# %%
# The script:
#
# .. literalinclude:: /../examples/torch_stream.py
#    :language: python
