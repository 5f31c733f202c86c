"""The operators of C++ that may be spelt as words.

In: nothing. Out: a table of words and the marks that they stand for.
"""

from __future__ import annotations

SPELT = {"and": "&&", "or": "||", "not": "!", "not_eq": "!=", "bitand": "&", "bitor": "|", "xor": "^", "compl": "~"}
