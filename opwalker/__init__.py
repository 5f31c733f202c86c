"""opwalker: read inference-library C++/CUDA from a Python op to the kernels it launches.

Reading order of the package: ``model`` (the nouns), ``source`` (where text comes from), ``notation`` (small
languages), ``facts`` (one file at a time), ``link`` (files joined), ``expand`` (macros, calls and launches followed),
``views`` (answers), ``serve`` (commands and output). ``pipeline`` is that order in code.
"""

__version__ = "0.1.0"
