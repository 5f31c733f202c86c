"""What the registration functions of torch do with their arguments.

In: the name of a function of ``torch.library`` (or a method of what it returns) and the values it is called with. Out:
``Effect``s, and the value that the call returns. Knowledge of torch's interface lives here and nowhere else.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.link.python_values import (
    NONE,
    Choice,
    Const,
    Defined,
    Func,
    Given,
    Lambda,
    Library,
    Method,
    Outer,
    Partial,
    Schema,
    Seq,
    Unknown,
    Value,
    is_given,
    reason_of,
)

#: torch's device types and the dispatch key that each of them stands for.
DEVICE_KEYS = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "xpu": "XPU",
    "mps": "MPS",
    "hpu": "HPU",
    "xla": "XLA",
    "ipu": "IPU",
    "mtia": "MTIA",
    "meta": "Meta",
    "privateuseone": "PrivateUse1",
    "default": "CompositeExplicitAutograd",
}
_LIBRARY_HOMES = ("torch.library.", "torch._library.", "torch._custom_op.")
#: Decorators and calls that give back their first argument.
_TRANSPARENT = frozenset(
    {"functools.lru_cache", "functools.cache", "functools.wraps", "staticmethod", "classmethod", "list", "tuple", "set"}
    | {"typing.cast", "torch.compiler.disable", "torch._dynamo.disable", "torch.no_grad"}
)
FUNCTIONS = frozenset(
    {"Library", "define", "impl", "custom_op", "triton_op", "register_fake", "impl_abstract", "register_kernel"}
    | {"register_autograd", "infer_schema"}
)
LIBRARY_METHODS = frozenset({"define", "impl", "_register_fake", "_impl_with_aoti_compile"})
DEFINED_METHODS = frozenset({"register_fake", "register_kernel", "register_autograd", "impl_abstract", "impl"})


class Effect(Struct, frozen=True):
    """One registration: ``action`` is ``define``, ``impl``, ``fake`` or ``autograd``.

    ``name`` is the op's full name where it is known, else None and ``why`` says why; ``given`` marks a name that a
    caller may still make known. ``schema``, ``function`` and ``key`` are values; a missing key is ``NONE``.
    """

    action: str
    name: str | None
    schema: Value = NONE
    function: Value = NONE
    key: Value = NONE
    library: Library | None = None
    why: str = ""
    given: bool = False


class Arguments(Struct, frozen=True):
    """The arguments of a call, with look-up by position or name."""

    positional: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    #: Whether ``*x`` or ``**x`` of unknown content was among them.
    open_ended: bool = False

    def get(self, at: int | None, name: str) -> Value:
        """The argument at a position, or of a name; ``NONE`` where it is left out."""
        for keyword, value in self.keywords:
            if keyword == name:
                return value
        if at is not None and at < len(self.positional):
            return self.positional[at]
        return Unknown("handed on as part of *args or **kwargs") if self.open_ended else NONE

    def has(self, at: int | None, name: str) -> bool:
        """Whether the argument is given."""
        return any(keyword == name for keyword, _ in self.keywords) or (at is not None and at < len(self.positional))


def library_function(dotted: str) -> str | None:
    """The name of a registration function by its full spelling, None for anything else."""
    name = dotted.rpartition(".")[2]
    return name if name in FUNCTIONS and dotted.startswith(_LIBRARY_HOMES) else None


def is_transparent(dotted: str) -> bool:
    """Whether a call of this function gives back the function that it is given."""
    return dotted in _TRANSPARENT


def op_of(value: Value) -> tuple[str | None, str, bool]:
    """``(full name or None, why not, whether a caller may give it)`` of a value that names an op."""
    match value:
        case Const(str() as text) if "::" in text:
            return text, "", False
        case Const(str() as text):
            return None, f'the op\'s name "{text}" has no namespace', False
        case Defined(name, _):
            return name, "", False
        case Outer(dotted) if dotted.startswith("torch.ops.") and dotted.count(".") > 2:
            namespace, op, *overload = dotted.split(".")[2:]
            suffix = f".{overload[0]}" if overload and overload[0] != "default" else ""
            return f"{namespace}::{op}{suffix}", "", False
        case Choice(values):
            names = {op_of(one)[0] for one in values}
            if len(names) == 1 and None not in names:
                return names.pop(), "", False
    return None, reason_of(value, "the op's name"), is_given(value)


def spelled_op(value: Value) -> str | None:
    """``torch.ops.ns.op`` of a value that is an op, None for anything else."""
    if isinstance(value, Outer | Defined):
        name = op_of(value)[0]
        return f"torch.ops.{name.replace('::', '.')}" if name else None
    return None


def qualified(library: Library, value: Value) -> tuple[str | None, str, bool]:
    """Like ``op_of`` for a name that is meant within a library's namespace."""
    match value:
        case Const(str() as text) if "::" in text:
            return text, "", False
        case Const(str() as text):
            match library.namespace:
                case Const(str() as namespace):
                    return f"{namespace}::{text}", "", False
            return None, reason_of(library.namespace, "the library's namespace"), is_given(library.namespace)
        case Outer() | Defined():
            return op_of(value)
    return None, reason_of(value, "the op's name"), is_given(value)


def call_function(name: str, given: Arguments, path: str, line: int) -> tuple[Value, list[Effect]]:
    """A call of a function of ``torch.library``."""
    match name:
        case "Library":
            made = Library(given.get(0, "ns"), given.get(1, "kind"), given.get(2, "dispatch_key"), path, line)
            return made, []
        case "infer_schema":
            prefix = given.get(None, "op_name")
            return Schema(given.get(0, "prototype_function"), given.get(1, "mutates_args"), prefix), []
        case "define":
            return _define(given)
        case "impl":
            return _impl(given)
        case "custom_op" | "triton_op":
            return _custom_op(given)
        case "register_fake" | "impl_abstract":
            return _attach("fake", given, given.get(0, "op"), given.get(1, "func"), given.has(1, "func"))
        case "register_kernel":
            return _kernel(given.get(0, "op"), given.get(1, "device_types"), given.get(2, "func"), given.has(2, "func"))
    return NONE, [_named("autograd", given.get(0, "op"), function=given.get(1, "backward"))]


def _named(action: str, op: Value, function: Value = NONE, key: Value = NONE) -> Effect:
    name, why, open_name = op_of(op)
    return Effect(action, name, function=function, key=key, why=why, given=open_name)


def waiting(name: str, *bound: tuple[str, Value]) -> Value:
    """A decorator of torch that still waits for its function."""
    return Partial(Outer(f"waiting.{name}"), (), bound)


def _attach(action: str, given: Arguments, op: Value, function: Value, complete: bool) -> tuple[Value, list[Effect]]:
    if complete and function != NONE:
        return function, [_named(action, op, function=function)]
    return waiting(action, ("op", op)), []


def _define(given: Arguments) -> tuple[Value, list[Effect]]:
    first = given.get(0, "qualname")
    if isinstance(first, Library):
        return waiting("define", ("library", first), ("schema", given.get(1, "schema"))), []
    name, why, open_name = op_of(first)
    schema = joined([Const(name.partition("::")[2]) if name else first, given.get(1, "schema")])
    return NONE, [Effect("define", name, schema=schema, why=why, given=open_name)]


def _impl(given: Arguments) -> tuple[Value, list[Effect]]:
    first = given.get(0, "qualname")
    if not isinstance(first, Library):
        types, function = given.get(1, "types"), given.get(2, "func")
        if isinstance(first, Outer | Unknown) and op_of(first)[0] is None:
            return Outer("builtins.staticmethod"), [Effect("impl", None, why=reason_of(first, "the library or op"))]
        if given.has(2, "func") and function != NONE:
            return NONE, _for_types(first, types, function)
        return waiting("types", ("op", first), ("types", types)), []
    name, key = given.get(1, "name"), given.get(2, "dispatch_key")
    return waiting("library_impl", ("library", first), ("name", name), ("key", key)), []


def _kernel(op: Value, types: Value, function: Value, complete: bool) -> tuple[Value, list[Effect]]:
    types = Const("default") if types == NONE else types
    if complete and function != NONE:
        return function, _for_types(op, types, function)
    return waiting("types", ("op", op), ("types", types)), []


def _for_types(op: Value, types: Value, function: Value) -> list[Effect]:
    return [_named("impl", op, function=function, key=key) for key in keys_of(types)]


def keys_of(types: Value) -> list[Value]:
    """The dispatch keys for device types, keys, or a list of either."""
    match types:
        case Seq(items) if items:
            return [key for item in items for key in keys_of(item)]
        case Const(str() as text):
            return [Const(DEVICE_KEYS.get(text, text))]
        case Const(None):
            return [Const("CompositeExplicitAutograd")]
    return [types]


def _custom_op(given: Arguments) -> tuple[Value, list[Effect]]:
    parts = (
        ("op", given.get(0, "name")),
        ("mutates", given.get(None, "mutates_args")),
        ("types", given.get(None, "device_types")),
        ("schema", given.get(None, "schema")),
    )
    function = given.get(1, "fn")
    if given.has(1, "fn") and function != NONE:
        return call_waiting("custom_op", dict(parts), function)
    return waiting("custom_op", *parts), []


def call_waiting(name: str, bound: dict[str, Value], function: Value) -> tuple[Value, list[Effect]]:
    """A waiting decorator meets its function."""
    op = bound.get("op", NONE)
    match name:
        case "fake" | "autograd":
            return function, [_named(name, op, function=function)]
        case "types":
            return function, _for_types(op, bound["types"], function)
        case "library_impl":
            library = bound["library"]
            assert isinstance(library, Library)
            return function, library_impl(library, bound["name"], function, bound["key"])
        case "define":
            library = bound["library"]
            assert isinstance(library, Library)
            effect = library_define(library, bound["schema"])
            return function, [effect, *library_impl(library, Const((effect.name or "").partition("::")[2]), function)]
    full, why, open_name = op_of(op)
    own = Const(full.partition("::")[2]) if full else op
    schema = bound["schema"]
    schema = Schema(function, bound["mutates"], own) if schema == NONE else joined([own, schema])
    effects = [Effect("define", full, schema=schema, function=function, why=why, given=open_name)]
    effects += [
        Effect("impl", full, function=function, key=key, why=why, given=open_name) for key in keys_of(bound["types"])
    ]
    return (Defined(full, function) if full else Unknown("an op without a known name")), effects


def call_library(library: Library, name: str, given: Arguments) -> tuple[Value, list[Effect]]:
    """A call of a method of a ``Library``."""
    match name:
        case "define":
            effect = library_define(library, given.get(0, "schema"))
            return Const(effect.name.partition("::")[2]) if effect.name else Unknown("not known"), [effect]
        case "_register_fake":
            full, why, open_name = qualified(library, given.get(0, "op_name"))
            function = given.get(1, "fn")
            return NONE, [Effect("fake", full, function=function, library=library, why=why, given=open_name)]
    op, function = given.get(0, "op_name"), given.get(1, "fn")
    return NONE, library_impl(library, op, function, given.get(2, "dispatch_key"))


def library_define(library: Library, schema: Value) -> Effect:
    """``library.define(schema)``: the op's name is what stands before the first bracket."""
    name = schema
    match schema:
        case Const(str() as text):
            name = Const(text.partition("(")[0].strip())
        case Schema(_, _, prefix):
            name = prefix
    full, why, open_name = qualified(library, name)
    return Effect("define", full, schema=schema, library=library, why=why, given=open_name)


def library_impl(library: Library, op: Value, function: Value, key: Value = NONE) -> list[Effect]:
    """``library.impl(op, function, key)``; without a key the library's own counts."""
    full, why, open_name = qualified(library, op)
    if key in (NONE, Const("")):
        key = library.key if library.key not in (NONE, Const("")) else Const("CompositeImplicitAutograd")
    return [Effect("impl", full, function=function, key=key, library=library, why=why, given=open_name)]


def call_defined(defined: Defined, name: str, given: Arguments) -> tuple[Value, list[Effect]]:
    """A call of a method of what ``custom_op`` returned."""
    if name == "register_kernel":
        return _kernel(defined, given.get(0, "device_types"), given.get(1, "fn"), given.has(1, "fn"))
    if name == "impl":
        return _kernel(defined, given.get(0, "device_types"), NONE, False)
    action = "autograd" if name == "register_autograd" else "fake"
    function = given.get(0, "fn" if action == "fake" else "backward")
    return _attach(action, given, defined, function, function != NONE)


def stray_effects(owner: Value, name: str, given: Arguments) -> list[Effect]:
    """A call that looks like one of a ``Library``'s methods, on an object that is not known to be a library."""
    first, second = given.get(0, "op_name"), given.get(1, "fn")
    if not isinstance(owner, Unknown | Outer) or not isinstance(first, Const) or not isinstance(first.value, str):
        return []
    why = reason_of(owner, "the library")
    if name == "define" and "(" in first.value and "->" in first.value:
        return [Effect("define", None, schema=first, why=why)]
    if name in ("impl", "_register_fake") and isinstance(second, Func | Lambda):
        return [Effect("impl" if name == "impl" else "fake", None, function=second, why=why)]
    return []


def joined(parts: list[Value]) -> Value:
    """Texts put together: one constant where all are, a schema with its name in front, else open or unknown."""
    texts = [part.value for part in parts if isinstance(part, Const) and isinstance(part.value, str)]
    if len(texts) == len(parts):
        return Const("".join(texts))
    if len(parts) == 2 and isinstance(parts[1], Schema) and parts[1].name in (Const(""), NONE):
        return Schema(parts[1].function, parts[1].mutates, parts[0])
    if any(is_given(part) for part in parts):
        return Given(" + ".join(part.text for part in parts if isinstance(part, Given)) or "put together")
    return Unknown("put together at run time")


def is_library_method(owner: Value, name: str) -> bool:
    """Whether ``owner.name`` is a method that registers."""
    if isinstance(owner, Library):
        return name in LIBRARY_METHODS
    return isinstance(owner, Defined) and name in DEFINED_METHODS


def call_method(method: Method, given: Arguments) -> tuple[Value, list[Effect]]:
    """A call of a method that registers."""
    if isinstance(method.owner, Library):
        return call_library(method.owner, method.name, given)
    assert isinstance(method.owner, Defined)
    return call_defined(method.owner, method.name, given)
