"""The rules of ``check``: one file a rule, named like its id. To add one, copy a file; change its page and ``run``.

What a page has no room for stands in ``tests/rules/examples``, and ``python -m tests.rules.mutants`` says which
conditions no example shows.
"""
