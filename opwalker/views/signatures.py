"""What schemas say of arguments and returned values: each text parsed once, in whatever run.

In: schema texts. Out: ``Argument`` and ``Returned`` values, or ``SchemaError``. Where all texts are known from an
earlier run, neither the parser nor the grammar is loaded.
"""

from __future__ import annotations

from collections.abc import Callable

from opwalker.model.walk import Argument, Returned

Said = tuple[tuple[Argument, ...], tuple[Returned, ...]]
Known = dict[str, Said]


class Signatures:
    """``recall`` gives what an earlier run has parsed, or None."""

    def __init__(self, recall: Callable[[], Known | None] = lambda: None) -> None:
        self._recall = recall
        self._known: Known | None = None
        #: What was parsed now for the first time.
        self.fresh = False

    @property
    def known(self) -> Known:
        """What every text that was parsed says."""
        if self._known is None:
            self._known = self._recall() or {}
        return self._known

    def of(self, text: str) -> Said:
        """The arguments and returned values of a schema. Raises ``SchemaError``."""
        found = self.known.get(text)
        if found is None:
            from opwalker.notation.op_schema import arguments_of, parse_schema, returns_of

            parsed = parse_schema(text)
            found = self.known[text] = arguments_of(parsed), returns_of(parsed)
            self.fresh = True
        return found
