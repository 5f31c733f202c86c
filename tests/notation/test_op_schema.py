"""Operator schemas: every form, both ways; refusals with their place; the facts that the JSON shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.model.schema import AliasSet, OpSchema
from opwalker.model.walk import Argument, Returned
from opwalker.notation.op_schema import (
    SchemaError,
    arguments_of,
    normalise_schema_text,
    parse_schema,
    print_schema,
    returns_of,
)
from tests.notation.schema_samples import equal_to_dispatcher, schemas, spaced

ACCEPTED = """
scale_rows(Tensor! out, Tensor x, float epsilon) -> ()
ns::scale_rows.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor(a! -> *) x, Tensor(a|b) y, Tensor(a -> b|c) z) -> Tensor(*)
f(Tensor!? x, Tensor(a!)? y, Tensor(b)[] z, Tensor?[] w, Tensor[](c!) v) -> Tensor[]
f(Tensor(a!)[](b!) x, int[][] y) -> Tensor(a)[]
f(int[]? x, int[3] y, int[1]? z=1, int!? w=None) -> int[2]
f(SymInt n, SymInt[] m, SymInt[2]? k=None) -> SymInt
f(ScalarType? a=None, str[] b, Device c="cuda", Generator? d=None) -> ScalarType
f(Layout a=strided, MemoryFormat b=contiguous_format, ScalarType c=long, int d=Mean) -> Layout
f(Stream s, Any x, Scalar v=1, complex c=1j) -> Any
f(Dict(str, Tensor) a, Dict(int, Dict(str, int[])[])? b) -> Dict(str, Tensor(a))
f((int, Tensor) a, (int, (Tensor, str[]))[] b, () c) -> ((int, Tensor))
f(__torch__.torch.classes.demo.Box a, __torch__.torch.classes.demo.Box(a!)? b) -> __torch__.torch.classes.demo.Box
f(t a, t1 b, tVal[](a!) c) -> t(*)
f(Future(t) a, RRef(t) b, Await(t)? c, Union(int, str) d) -> Future(t)
f(float a=1.702, float b=-1e-5, float c=7., float d=.5, int e=-1, int g=0x1F) -> ()
f(str a="auto", str b='fp8', str c="a\\"b", str d='it\\'s', str e="x)  ,(y", str g="") -> ()
f(int[] a=[0,1], int[2] b=[0, 1], int[] c=[], bool[3] d=True, float[] e=[0.5, -1]) -> ()
f(*, int a, Tensor b) -> (Tensor(a!), Tensor b)
f(Tensor x, ...) -> ...
f(...) -> (Tensor, ...)
f() -> (Tensor)
f() -> Tensor(a!) out
f(Tensor from, Tensor self, int type, int Tensor, int int, Tensor Dict) -> (Tensor x, int y)
f(None x) -> NoneType
""".strip().splitlines()


@pytest.mark.parametrize("text", ACCEPTED)
def test_every_form_is_read_and_printed_back(text: str) -> None:
    schema = parse_schema(text)
    assert print_schema(schema) == text
    assert normalise_schema_text(text) == text


@given(schemas())
def test_a_printed_value_parses_to_itself(schema: OpSchema) -> None:
    assert parse_schema(print_schema(schema)) == schema


@given(schemas().map(print_schema).flatmap(lambda text: st.tuples(st.just(text), spaced(text))))
def test_white_space_says_nothing(texts: tuple[str, str]) -> None:
    text, noisy = texts
    assert print_schema(parse_schema(noisy)) == normalise_schema_text(noisy)
    assert parse_schema(noisy).returns == parse_schema(text).returns
    assert normalise_schema_text(normalise_schema_text(noisy)) == normalise_schema_text(noisy)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("norm( Tensor! out,Tensor  x ) -> ()", "norm(Tensor! out, Tensor x) -> ()"),
        ("norm(Tensor!x)->()", "norm(Tensor! x) -> ()"),
        (
            "f(Tensor[] (a!) x, int [ 3 ] ? y = 1 ) -> ( Tensor , int )",
            "f(Tensor[](a!) x, int[3]? y=1) -> (Tensor, int)",
        ),
        ("ns :: f . out (Tensor( a ! -> * ) x) -> ()", "ns::f.out(Tensor(a! -> *) x) -> ()"),
        ('f(str x = "a  ,  b", int[] y=[ 0 ,1,  2 ]) -> ()', 'f(str x="a  ,  b", int[] y=[0,1, 2]) -> ()'),
        ("f(Tensor x,  # the input\n  int n) -> ()", "f(Tensor x, int n) -> ()"),
        ("f(float x= - 1.5,Tensor[]y) -> ...", "f(float x=-1.5, Tensor[] y) -> ..."),
        ("\n  f(Tensor x,\n    int n)\\\n -> ()\n", "f(Tensor x, int n) -> ()"),
    ],
)
def test_normal_white_space(written: str, normal: str) -> None:
    assert normalise_schema_text(written) == normal
    assert print_schema(parse_schema(written)) == normal


REFUSED = [
    ("f(Tensor x)", "expected `->`, found the end", 1, 12),
    ("f(Tensor x) -> ", "found the end", 1, 15),
    ("f(Tensor x", "found the end", 1, 11),
    ("f", "expected `(`, found the end", 1, 2),
    ("", "expected an operator name, found the end", 1, 1),
    ("f(Tensor x,) -> ()", "found `)`", 1, 12),
    ("f(Tensor x,, int y) -> ()", "found `,`", 1, 12),
    ("f(Tensor) -> ()", "expected a name", 1, 9),
    ("f(Tensor x) - > ()", "expected `->`, found `-`", 1, 13),
    ("f(Tensor x) -> ();", "found `;`", 1, 18),
    ("f(Tensor x) -> Tensor, Tensor", "the end, found `,`", 1, 22),
    ("f(Tensor x y) -> ()", "found `y`", 1, 12),
    ("a::b::f() -> ()", "found `:`", 1, 5),
    ("f.default(Tensor x) -> ()", "`default` is reserved", 1, 1),
    ("f.__x(Tensor x) -> ()", "`__x` is reserved", 1, 1),
    ("f(int n, int64_t m) -> ()", "unknown type `int64_t`; write `int`", 1, 10),
    ("f(double x) -> ()", "unknown type `double`; write `float`", 1, 3),
    ("f(std::string x) -> ()", "unknown type `std::string`; write `str`", 1, 3),
    ("f(int x, at::Tensor& y) -> ()", "unknown type `at::Tensor`; write `Tensor`", 1, 10),
    ("f(Tensor x) -> void", "unknown type `void`; write `()`", 1, 16),
    ("f(Tensor?! x) -> ()", "found `!`", 1, 10),
    ("f(Tensor() x) -> ()", "found `(`", 1, 9),
    ("f(Tensor(a b) x) -> ()", "found `(`", 1, 9),
    ("f(int[3][] x) -> ()", "found `[`", 1, 9),
    ("f(Dict(str) x) -> ()", "expected `,`, found `)`", 1, 11),
    ("f(Dict(int[], str) x) -> ()", "`int[]` cannot be the key of a Dict", 1, 3),
    ("f(Future(t, t) x) -> ()", "`Future` takes one type", 1, 3),
    ("f(Tensor in) -> ()", "found `in`", 1, 10),
    ("f(..., Tensor x) -> ()", "`...` must be the last argument", 1, 1),
    ("f(int x=1, ...) -> ()", "a schema with `...` cannot have defaults", 1, 1),
    ("f() -> (..., Tensor)", "`...` must be the last returned value", 1, 1),
    ("f(int a=1, Tensor b) -> ()", "`b` has no default", 1, 19),
    ("f(Tensor x=0) -> ()", "default of a Tensor can only be None", 1, 12),
    ("f(bool x=true) -> ()", "unknown default `true`; write `True`", 1, 10),
    ("f(float x=inf) -> ()", "unknown default `inf`", 1, 11),
    ("f(int x=long2) -> ()", "unknown default `long2`", 1, 9),
    ("f(int[] x=1) -> ()", "the default of a list is a list", 1, 11),
    ("f(int[]? x=[1]) -> ()", "a list is the default of a list type only", 1, 12),
    ("f(int[] x=[0.5]) -> ()", "`0.5` is no int", 1, 11),
    ("f(bool[] x=[1]) -> ()", "`1` is no bool", 1, 12),
    ("f(str[] x=[]) -> ()", "no default", 1, 11),
    ("f(Any x=None) -> ()", "a Any has no default", 1, 9),
    ("f(Device x=cpu) -> ()", "the default of a Device is a string", 1, 12),
    ('f(str x="a\\q") -> ()', "expected a default value", 1, 9),
    ("f(Tensor x,\n  Foo y) -> ()", "unknown type `Foo`", 2, 3),
    ("f(Tensor x)\n  -> ()", "a line may break inside brackets only", 1, 12),
    ("f(Tensor x) -> Tensor é", "found `é`", 1, 23),
]


@pytest.mark.parametrize(("text", "message", "line", "column"), REFUSED)
def test_a_bad_schema_is_refused_with_its_place(text: str, message: str, line: int, column: int) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@given(st.text(alphabet="fx(),->!?[]. =:*\"'ab1\n\\#", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        schema = parse_schema(text)
    except SchemaError as error:
        assert error.line >= 1 and error.column >= 1
        assert isinstance(error, ValueError)
    else:
        assert parse_schema(print_schema(schema)) == schema


def test_type_variables_can_be_refused() -> None:
    assert parse_schema("f(t[] x) -> t").arguments[0].type.base == "t"
    with pytest.raises(SchemaError, match="type variable") as caught:
        parse_schema("t(int x, Dict(str, t) y) -> ()", type_variables=False)
    assert caught.value.column == 20
    assert parse_schema("t(int t) -> ()", type_variables=False).name == "t"


def test_a_star_without_arguments_is_dropped() -> None:
    assert print_schema(parse_schema("f(Tensor x, *) -> ()")) == "f(Tensor x) -> ()"


def test_the_value_of_alias_sets() -> None:
    schema = parse_schema("f(Tensor! a, Tensor(b|c! -> *) d, Tensor[](e) g) -> ()")
    aliases = [argument.type.alias for argument in schema.arguments]
    assert aliases == [AliasSet(mutated=True, bare=True), AliasSet(("b", "c"), ("*",), True), AliasSet(("e",))]
    assert [argument.type.alias_at for argument in schema.arguments] == [0, 0, 1]


def test_arguments_as_the_json_shows_them() -> None:
    schema = parse_schema("f(Tensor! result, Tensor(b!)? scale, int[2]? n=1, *, Tensor(a!)[] rest, str! s) -> ()")
    assert arguments_of(schema) == (
        Argument("result", "Tensor", mutated=True, alias="c!"),
        Argument("scale", "Tensor?", mutated=True, alias="b!", optional=True),
        Argument("n", "int[2]?", optional=True, default="1"),
        Argument("rest", "Tensor[]", mutated=True, alias="a!", kwarg_only=True),
        Argument("s", "str", mutated=True, alias="d!", kwarg_only=True),
    )


def test_bare_marks_get_letters_in_order() -> None:
    schema = parse_schema("f(Tensor! x, Tensor y, Tensor!? z, Tensor(a -> *) w) -> (Tensor!, Tensor(a) v)")
    assert [(a.name, a.alias, a.mutated) for a in arguments_of(schema)] == [
        ("x", "b!", True),
        ("y", None, False),
        ("z", "c!", True),
        ("w", "a -> *", False),
    ]
    assert returns_of(schema) == (Returned("Tensor", None, "d!"), Returned("Tensor", "v", "a"))


def test_letters_do_not_run_out() -> None:
    schema = parse_schema(f"f({', '.join(f'Tensor! x{i}' for i in range(30))}) -> ()")
    aliases = [argument.alias for argument in arguments_of(schema)]
    assert aliases[:2] + aliases[25:28] == ["a!", "b!", "z!", "a1!", "b1!"]
    assert len(set(aliases)) == 30


@pytest.mark.parametrize(
    ("ours", "theirs", "equal"),
    [
        ("f(Tensor! x, float a=7.0) -> ()", "ns::f(Tensor($0! -> ) x, float a=7.) -> ()", True),
        ("f(Tensor!? x) -> (Tensor)", "f(Tensor($3! -> )? x) -> Tensor", True),
        ("f(str a='auto') -> ()", 'f(str a="auto") -> ()', True),
        ("f(Tensor(a!) x) -> ()", "f(Tensor(a!) x) -> ()", True),
        ("f(Tensor x) -> ()", "f(Tensor($0! -> ) x) -> ()", False),
        ("f(int x=1) -> ()", "f(int x=2) -> ()", False),
        ("f(int x) -> ()", "f(SymInt x) -> ()", False),
        ("a::f(int x) -> ()", "b::f(int x) -> ()", False),
    ],
)
def test_comparison_with_the_dispatchers_spelling(ours: str, theirs: str, equal: bool) -> None:
    assert equal_to_dispatcher(ours, theirs) is equal
