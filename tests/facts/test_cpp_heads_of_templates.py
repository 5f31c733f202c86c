"""What heads of templates say besides their parameters: requires clauses, the class of a member defined outside,
specialised variables, explicit instantiations of classes."""

from __future__ import annotations

import pytest

from tests.trees import scan_text

HEADS = [
    ("template <typename T> requires (sizeof(T) == 4) void f(T* a) {}", "((sizeof(T) == 4))", None),
    ("template <typename T> requires C<T> && D<T> void f(T* a) {}", "(C<T> && D<T>)", None),
    ("template <typename T> void f(T* a) requires C<T> {}", "(C<T>)", None),
    ("template <typename T> requires C<T> auto f(T* a) -> int requires D<T> {}", "(C<T>) && (D<T>)", None),
    ("template <typename T> void f(T* a) {}", None, None),
    ("template <typename T, int N> void A<T, N>::f(T* a) {}", None, "T, N"),
    ("template <typename T> template <int M> void ns::A<T, 3>::f(T* a) {}", None, "T, 3"),
    ("template <> void A<float>::f(float* a) {}", None, "float"),
    ("void A::f(float* a) {}", None, None),
]


@pytest.mark.parametrize(("text", "requires", "owner"), HEADS)
def test_heads_of_functions(text: str, requires: str | None, owner: str | None) -> None:
    (made,) = scan_text(text).functions
    assert (made.name, made.requires, made.owner) == ("f", requires, owner)


VARIABLES = [
    ("template <> constexpr int v<double> = 7;", "double"),
    ("template <typename T> inline constexpr bool v<T*> = true;", "T*"),
    ("template <typename T> constexpr int v = sizeof(T);", None),
]


@pytest.mark.parametrize(("text", "wanted"), VARIABLES)
def test_specialised_variables(text: str, wanted: str | None) -> None:
    (made,) = scan_text(text).variables
    assert (made.name, made.specialisation) == ("v", wanted)


def test_explicit_instantiations_of_classes() -> None:
    text = "template struct A<float, 4>;\nnamespace n { extern template class m::B<int>; }\n"
    found = scan_text(text + "struct C;\ntemplate <> struct A<int>;").instantiations
    assert [(i.name, i.scope, i.arguments, i.external, i.line) for i in found] == [
        ("A", (), "float, 4", False, 1),
        ("B", ("n", "m"), "int", True, 2),
    ]


def test_classes_that_are_only_named() -> None:
    text = (
        "namespace kit {\nstruct Rows;\ntemplate <int N> class Group;\n}\nstruct Rows { struct Inner; };\n"
        "template <> struct Group<3>;\nstruct Rows made;\nstruct ROW row;\nfriend class Other;\n"
    )
    found = [(one.name, one.scope, one.template, one.line) for one in scan_text(text).declared_classes]
    assert found == [
        ("Rows", ("kit",), None, 2),
        ("Group", ("kit",), "int N", 3),
        ("Inner", ("Rows",), None, 5),
    ]
