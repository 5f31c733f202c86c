"""What a call can mean beyond a name: objects that are made, and explicit specialisations that its arguments pick.

In: facts of a body. Out: calls of constructors, and candidates narrowed to those that template arguments leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame
from opwalker.expand.kernels import KernelFinder
from opwalker.expand.resolve import Candidate, Context, Resolver, strip_arguments
from opwalker.expand.template_heads import template_parameters
from opwalker.expand.terms import builtin
from opwalker.expand.types import TypeReader
from opwalker.facts.cpp_body import argument_spans
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.body import CallFact
from opwalker.model.walk import Gap, Span
from opwalker.notation.regex import Regex
from opwalker.notation.short_texts import kept_if_short

_MAKERS = frozenset("make_unique make_shared make_optional optional unique_ptr shared_ptr".split())
_PURE_NAME = Regex(r"&?\s*(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)*(?:\s*<.*>)?\Z", re.DOTALL)
_FUNCTOR = Regex(r"(?:::)?([\w:]+?)(?:<.*>)?\s*(?:\{.*\}|\(.*\))\Z", re.DOTALL)
#: What a local's type has besides its class: qualifiers before it, an extent behind it.
_DECORATION = Regex(r"^(?:(?:const|static|constexpr|thread_local)\s+)+|\s*\[[^\]]*\]\Z")
_NUMBER = Regex(r"-?\d+[uUlL]*|true|false")
#: The address of a variable or of a part of it, and a size that is known where it is written.
_ADDRESS = Regex(r"&\s*([A-Za-z_]\w*)(?:\s*\.\s*\w+)*")
_FIXED_SIZE = Regex(r"sizeof\s*(?:\([^()*]*\)|\w+)|\d+[uUlL]*")


def constructions(body: Body, classes: frozenset[str]) -> Iterable[CallFact]:
    """The locals whose type is one of ``classes`` (simple names), and objects made as ``T{...}``, as calls of the
    constructor."""
    for made in body.facts.braced:
        if strip_arguments(made.name).split("::")[-1] in classes:
            yield made
    for local in body.facts.locals:
        if not local.name or local.type in ("using", "namespace", "using namespace") or local.type[-1:] in "*&":
            continue
        written = _DECORATION.sub("", local.type)
        simple = strip_arguments(written).split("::")[-1]
        if simple not in classes:
            continue
        value = local.value
        if value is not None and body.expanded.full[value[0]] not in "({":
            continue  # a call or a temporary on the right: it stands among the calls itself
        arguments = argument_spans(body.expanded.full, value) if value is not None else ()
        arguments = tuple(a for a in arguments if a[1] > a[0])
        yield CallFact(local.start, local.end, (local.start, local.start), written, None, arguments, None, local.block)


def made_class(call: CallFact, body: Body, classes: frozenset[str]) -> str | None:
    """The class whose constructor a call runs: ``T(...)``, ``new T(...)``, ``std::make_unique<T>(...)``."""
    simple = strip_arguments(call.name).split("::")[-1]
    if simple in classes:
        return strip_arguments(call.name)
    if simple in _MAKERS and call.template_arguments:
        text = strip_arguments(body.text(call.template_arguments[0]))
        return text if text.split("::")[-1] in classes else None
    return None


def is_made(callee: str, classes: frozenset[str]) -> bool:
    """Whether a callee is an object made for the call: ``Launcher(grid)(...)``."""
    name = strip_arguments(re.split(r"[({\[]", callee, maxsplit=1)[0])
    return name.split("::")[-1] in classes


def is_read_here(body: Body, call: CallFact) -> bool:
    """Whether a called local is a type, or holds a lambda, which is read with the body that it stands in."""
    held = body.locals_at(call.simple, call.start)
    values = body.values_of(call.simple, call.start)
    return any(f.type == "using" for f in held) or any(
        start <= one.start < end for start, end in values for one in body.facts.lambdas
    )


def picked(candidates: Sequence[Candidate], call: CallFact, body: Body) -> Sequence[Candidate]:
    """The candidates that explicit template arguments leave: the specialisation for them, or what is none.

    Arguments that are no builtin types or numbers may mean anything; then every candidate stays.
    """
    special = [c for c in candidates if c.function.specialisation and c.function.template == ""]
    if not special or not call.template_arguments:
        return candidates
    wanted = [_plain(body.text(span)) for span in call.template_arguments]
    fitting = [c for c in special if _arguments(c) == wanted]
    if fitting:
        return fitting
    if any(text is None for text in wanted):
        return candidates
    return [c for c in candidates if c not in special] or candidates


def _arguments(candidate: Candidate) -> list[str | None]:
    text = candidate.function.specialisation or ""
    return [_plain(text[a:b]) for a, b in split_commas(text, 0, len(text))]


def _plain(text: str) -> str | None:
    bare = " ".join(text.split())
    return builtin(bare) or (bare if _NUMBER.fullmatch(bare) else None)


def applied(name: str, context: Context, types: TypeReader, resolver: Resolver) -> list[Candidate] | None:
    """The methods that ``C::apply`` of an autograd function runs; None where the name is no such call.

    torch::autograd::Function<C> gives C a static apply(), which runs C::forward with a context before its arguments;
    C::backward runs later, from the graph that this call enters it in.
    """
    if simple_of(name) != "apply" or "::" not in name:
        return None
    made = types.class_name(name.rsplit("::", 1)[0], context)
    if not made or not resolver.derives_from(made, "Function"):
        return None
    return [c for method in ("forward", "backward") for c in resolver.method(method, made, context).candidates]


def unread_places(body: Body) -> Iterator[Gap]:
    """What of a body could not be read and may hold a call or a launch."""
    for start, end in body.facts.errors:
        text = body.text((max(0, start), end))
        if "(" in text or "<<<" in text:
            path, line = body.origin(max(0, start))
            shown = body.written((max(0, start), min(end, start + 60)))
            yield Gap("unread", Span(path, line, line), f"not read: {shown}")


def is_device_code(candidate: Candidate) -> bool:
    """Whether a definition is compiled for the device alone."""
    flags = candidate.function.flags
    return "global" in flags or ("device" in flags and "host" not in flags)


def runs_on_device(body: Body, offset: int) -> bool:
    """Whether the code at an offset of a host function is that of a lambda for the device alone."""
    full = body.expanded.full
    heads = (full[held.start : held.body[0]] for held in body.enclosing_lambdas(offset))
    return any("__device__" in head and "__host__" not in head for head in heads)


def is_bit_copy(body: Body, call: CallFact) -> bool:
    """Whether a ``memcpy`` gives one variable the bits of another: ``memcpy(&bits, &x, sizeof(bits))``, at least one of
    them the function's own. It moves no memory of an op: it is how C++ reads a value as another type."""
    if call.simple != "memcpy" or len(call.arguments) != 3:
        return False
    target, source, size = (body.text(span) for span in call.arguments)
    ends = [_ADDRESS.fullmatch(text) for text in (target, source)]
    if not all(ends) or not _FIXED_SIZE.fullmatch(size):
        return False
    own = {p.name for p in body.function.parameters} if body.function is not None else set()
    return any(end[1] in body.locals or end[1] in own for end in ends if end)


def simple_of(name: str) -> str:
    """A name without its qualifiers."""
    return name.rsplit("::", 1)[-1]


def functor_name(callee: str) -> str | None:
    """The class of the object that is made where it is called: ``C`` of ``C<T>{x}`` and ``C(x)``."""
    functor = _FUNCTOR.match(callee)
    return functor.group(1) if functor else None


def handed_name(text: str, frame: Frame, body: Body, functions: frozenset[str]) -> str | None:
    """The function of ``functions`` (simple names) that an argument of a call is no more than the name of."""
    if text in body.locals or text in ("true", "false", "nullptr"):
        return None
    name, simple = _pure(text)
    known = bool(name) and simple in functions and simple not in frame.parameter_names and simple not in body.locals
    return name if known else None


@kept_if_short
def _pure(text: str) -> tuple[str, str]:
    """A text that is no more than a name, without what takes its address, and its simple name; nothing for others."""
    if not _PURE_NAME.match(text):
        return "", ""
    name = text.lstrip("& ")
    return name, re.sub(r"<.*", "", name, flags=re.DOTALL).split("::")[-1].strip()


def handed_over(
    kernels: KernelFinder,
    types_of: TypeReader,
    frame: Frame,
    body: Body,
    call: CallFact,
    passed: Sequence[tuple],
    candidate: Candidate,
) -> tuple[dict, dict]:
    """The kernels that a call hands over, and the classes, by parameter. ``passed`` are the kernels that its arguments
    can be."""
    functions: dict[str, tuple] = {}
    types: dict[str, str] = {}
    for parameter, found in zip(candidate.function.parameters, passed, strict=False):
        if parameter.name and found:
            functions[parameter.name] = found
    parameters = template_parameters(candidate.function.template)
    for number, span in enumerate(call.template_arguments or ()):
        # A pack takes all that is left.
        parameter = parameters[min(number, len(parameters) - 1)] if parameters else None
        if parameter is None or (number >= len(parameters) and not parameter.pack):
            break
        found = kernels.in_argument(body, span, frame)
        if found:
            functions[parameter.name] = (*functions.get(parameter.name, ()), *found)
        bound = types_of.bindable(body.text(span), frame)
        if bound:
            types.setdefault(parameter.name, bound)
    return functions, types
