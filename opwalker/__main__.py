"""``python -m opwalker``: the same as the ``opwalker`` command."""

import sys

from opwalker.serve.cli import main

if __name__ == "__main__":
    sys.exit(main())
