"""Why an axis of instances has its values: one axis a template parameter, each value with where it comes from."""

from __future__ import annotations

from msgspec import Struct


class AxisOrigin(Struct, frozen=True):
    """A place that gives an axis some of its values.

    ``kind``: ``macro`` (``text`` is the macro's name, ``line`` its use), ``switch`` (``text`` is what it tests),
    ``branch`` (``text`` is written under a condition), ``argument`` (``text`` is written as a template argument),
    ``local`` (``text`` is the value of a constant or alias), ``deduced`` (from the type of the argument ``text``),
    ``default`` (of the parameter), ``computed`` (``text`` is worked out from other arguments), ``instantiation`` (an
    explicit one). ``cases`` are the labels or conditions that the values stand under: one for each value, or none.
    ``parts`` are the names in a computed text, each an axis of its own.
    """

    kind: str
    text: str
    file: str
    line: int
    values: tuple[str, ...]
    cases: tuple[str, ...] = ()
    parts: tuple[Axis, ...] = ()


class AxisGiven(Struct, frozen=True):
    """The values that an axis takes while another one has one of the values ``when``."""

    when: tuple[str, ...]
    values: tuple[str, ...]


class Axis(Struct, frozen=True):
    """A template parameter with the values that its instances have, as printed, and where they come from.

    A value without an origin is one whose way could not be followed. Where not every value occurs with every value of
    another parameter, ``depends_on`` names that one and ``given`` lists what occurs with what; where it takes more
    than one other parameter to tell, ``depends_on`` is ``"*"``.
    """

    parameter: str
    values: tuple[str, ...]
    origins: tuple[AxisOrigin, ...] = ()
    depends_on: str | None = None
    given: tuple[AxisGiven, ...] = ()
