"""``python -m opwalker``: the same as the ``opwalker`` command."""

from opwalker.serve.cli import run

if __name__ == "__main__":
    run()
