"""Numba kernels of the simulated systems, one file per problem, parallel over lanes.

A lane is one point of one trial. Lanes share no written data, so results do not depend on the number of threads or on
other lanes. Overflow gives inf.

Compiled code is cached next to its source, and Numba recompiles when that file changes, but not when a file it imports
does: after editing `matrices` or `compiling`, remove `__pycache__/*.nb?` here.
"""
