"""Texts put together from pieces of C++ that do not belong together, for tests that nothing may break on."""

from __future__ import annotations

from hypothesis import strategies as st

#: Each piece closes what it opens; quotes and comments are whole.
BALANCED = (
    "int x",
    ";",
    "{ }",
    "{ a; }",
    "( )",
    "(a, b)",
    "[ ]",
    "[3]",
    "template <typename T>",
    "template <int N = 3>",
    "template <>",
    "template",
    "requires C<T>",
    "void f",
    "f(int a)",
    "f(int a) { return; }",
    "struct S",
    "struct S { int a; };",
    "class A : public B",
    "enum E { P, Q };",
    "enum",
    "namespace n",
    "namespace",
    "namespace n { void q() {} }",
    "using T = int;",
    "typedef",
    'extern "C"',
    '"str { ("',
    "'{'",
    'R"x(} { ")x"',
    "// comment { (\n",
    "/* block { */",
    "\n#if A\n",
    "\n#else\n",
    "\n#elif B\n",
    "\n#endif\n",
    "\n#define X(a) { a (\n",
    "\n#define Y \\\n } )\n",
    '\n#include "x.h"\n',
    "\n#pragma once\n",
    "MACRO",
    "MACRO(a, b)",
    "MACRO(a) {}",
    "~",
    "->",
    "<",
    ">",
    "<<",
    ">=",
    "::",
    ":",
    ",",
    "operator()",
    "operator<",
    "operator",
    "static",
    "constexpr",
    "__global__",
    "__launch_bounds__(1)",
    "[[nodiscard]]",
    "noexcept",
    "auto",
    "a<b>",
    "std::vector<int> v{1};",
    ": a_(1), b_{2}",
    "[](int a) { return a; }",
    "1'000",
    "0.5f",
    "&&",
    "&",
    "*",
    "?",
    "@",
    "\\",
    "#",
    "$",
    "\n",
    'm.def("f", &f);',
    'TORCH_LIBRARY(ns, m) { m.def("f() -> ()"); }',
    "k<<<1, 2>>>(a);",
    "= 3",
    "é",
    "\t",
    "\r\n",
)

#: Pieces that leave something open, or close what was never opened.
BROKEN = ("{", "}", "(", ")", "[", "]", '"', "'", "/*", "*/", 'R"(', ')"', "<<<", ">>>", "= {")


def balanced_texts(size: int = 12) -> st.SearchStrategy[str]:
    """Joined pieces without anything left open."""
    return st.lists(st.sampled_from(BALANCED), max_size=size).map(" ".join)


def texts(size: int = 16) -> st.SearchStrategy[str]:
    """Joined pieces, whatever they are."""
    return st.lists(st.sampled_from(BALANCED + BROKEN), max_size=size).map(" ".join)
