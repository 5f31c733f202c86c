"""What an expression asks of the place it stands in: the protocol that ``Environment`` fulfils."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from opwalker.expand.terms import ConstTerm, ListTerm, Term, TypeTerm


class Scope(Protocol):
    """What an expression's names mean."""

    def kept(self, kind: str, text: str, read: Callable[[str], Term]) -> Term:
        """What ``read`` gives for a text here, from an earlier reading of the ``kind`` if there is one. Raises
        Unknown."""

    def name(self, text: str) -> Term:
        """The term that a (qualified) name without template arguments means. Raises Unknown."""

    def template(self, text: str, arguments: str, member: str | None) -> Term:
        """The term that ``text<arguments>`` or ``text<arguments>::member`` means. Raises Unknown."""

    def type(self, text: str) -> TypeTerm:
        """A type. Raises Unknown."""

    def type_of(self, text: str) -> TypeTerm:
        """The type of an expression. Raises Unknown."""

    def member(self, owner: TypeTerm, name: str) -> Term:
        """A member of a type. Raises Unknown."""

    def field_of(self, value: ListTerm, name: str) -> Term:
        """A field of a constant object. Raises Unknown."""

    def object_of(self, made: ListTerm) -> ListTerm:
        """An object that was made of a list: each of its fields, where that can be said. Raises Unknown."""

    def call_on(self, held: ListTerm, name: str, arguments: list[str]) -> Term | None:
        """A constexpr method called on an object; None where its class has none of that name. Raises Unknown."""

    def converted(self, held: Term) -> ConstTerm | None:
        """The number that an object converts to; None for none. Raises Unknown."""

    def call(self, text: str, template: str | None, arguments: list[str]) -> Term:
        """A call of a constexpr function. Raises Unknown."""

    def call_member(self, owner: TypeTerm, name: str, template: str | None, arguments: list[str]) -> Term:
        """A call of a static constexpr member function. Raises Unknown."""

    def count(self, pack: str) -> int:
        """How many elements a parameter pack has. Raises Unknown."""

    def spread(self, text: str) -> list[Scope]:
        """For a pattern that names packs: a scope for each of their elements. Raises Unknown."""

    def size(self, kind: str) -> int:
        """The size of a canonical type in bytes. Raises Unknown."""

    def alignment(self, kind: str) -> int:
        """The alignment of a canonical type in bytes. Raises Unknown."""
