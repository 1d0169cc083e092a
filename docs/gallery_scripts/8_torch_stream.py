"""
A PyTorch model on a drifting stream
====================================

A network keeps up with data whose law turns while it runs, from the values of the loss alone: forward passes, no
backward pass, by :doc:`the optimizer for PyTorch </adapters/torch>`. Adam, which has gradients, does better with the
same passes: where you have gradients, use them.

PyTorch is not installed where the site is built: this page was not run with it. The picture is what ``make pictures``
drew with the same script in the environment of the hosts, ``.venv-hosts/bin/python examples/torch_stream.py``.

.. image:: /pictures/torch_stream.png
   :alt: The loss of three models on a stream that drifts

.. literalinclude:: /../examples/torch_stream.py
   :language: python
"""

# sphinx_gallery_thumbnail_path = 'pictures/torch_stream.png'
