"""What schemas say of arguments and returned values: each text parsed once, in whatever run.

In: schema texts. Out: ``Argument`` and ``Returned`` values, or ``SchemaError``. Where all texts are known from an
earlier run, neither the parser nor the grammar is loaded.
"""

from __future__ import annotations

from opwalker.model.walk import Argument, Returned
from opwalker.notation.readings import Readings

Said = tuple[tuple[Argument, ...], tuple[Returned, ...]]
Known = dict[str, Said]


class Signatures(Readings[Said]):
    """The readings of schemas."""

    def of(self, text: str) -> Said:
        """The arguments and returned values of a schema. Raises ``SchemaError``."""
        return self.reading(text, _parse)


def _parse(text: str) -> Said:
    from opwalker.notation.op_schema import arguments_of, parse_schema, returns_of

    parsed = parse_schema(text)
    return arguments_of(parsed), returns_of(parsed)
