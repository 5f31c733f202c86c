"""The rules of ``check``: one file a rule, named like its id. To add one, copy a file; change its page and ``run``."""
