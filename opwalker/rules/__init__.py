"""The rules of ``check``: one file a rule, named like its id. To add one, copy a file; change its page and ``run``. What
its page has no room for stands in ``tests/rules/examples``; ``python -m tests.rules.mutants`` says what no example shows.
"""
