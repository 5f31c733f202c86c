"""Every op that C++ registers: definitions and implementations of one name joined, whatever binding they came by.

In: bindings read from C++. Out: ``Op`` values by name, and gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.workbench import Workbench
from opwalker.model.binding import Binding
from opwalker.model.walk import Gap, HostRef, Op, OpDef, OpImpl, Span
from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import condition_text
from opwalker.notation.op_schema import SchemaError
from opwalker.notation.schema_text import normalise_schema_text
from opwalker.views.signatures import Signatures


def shown_condition(terms: Sequence[str]) -> str | None:
    """A preprocessor condition as the contract spells it."""
    return condition_text(parse_condition(term) for term in terms) if terms else None


def _joined_name(name: str) -> str:
    """``impl("f")`` belongs to ``def("f.default(…)")``: the default overload goes by the op's own name."""
    return name.removesuffix(".default") if "::" in name else name


class OpsView:
    """Joins bindings into ops. What Python adds, ``views.joined`` says."""

    def __init__(self, workbench: Workbench, signatures: Signatures | None = None) -> None:
        self._workbench = workbench
        self._signatures = signatures or Signatures()
        self._gaps: list[Gap] = []
        self._by_name: dict[str, list[Binding]] = {}
        for binding in workbench.bindings().bindings:
            self._by_name.setdefault(_joined_name(binding.name), []).append(binding)

    def names(self) -> tuple[str, ...]:
        """The names of all ops, without working any of them out."""
        return tuple(sorted(self._by_name))

    def op(self, name: str) -> Op | None:
        """One op by its full name; None where C++ registers nothing of that name."""
        found = self._by_name.get(name)
        return self._op(name, found) if found else None

    def gaps(self) -> tuple[Gap, ...]:
        """What was met so far that could not be read."""
        return tuple(dict.fromkeys((*self._workbench.bindings().gaps, *self._gaps)))

    def _op(self, name: str, bindings: list[Binding]) -> Op:
        # Where builds define the op differently, the build that was asked for speaks first.
        definitions = sorted((b for b in bindings if b.role == "def"), key=self._elsewhere)
        schema = None
        signature = None
        arguments: tuple = ()
        returns: tuple = ()
        for binding in definitions:
            if binding.schema is None:
                continue
            text = normalise_schema_text(binding.schema)
            if schema is None:
                schema = text
            try:
                said = self._signatures.of(text)
                if not arguments and not returns:
                    arguments, returns = said
            except SchemaError as error:
                self._gaps.append(
                    Gap("bad-schema", Span(binding.path, binding.line, binding.line), f"{name}: {error} in `{text}`")
                )
        impls = tuple(
            self._impl(b, len(arguments) if schema else None)
            for b in sorted((b for b in bindings if b.role == "impl"), key=self._elsewhere)
        )
        if schema is None:
            signature = next((s for s in (self._signature(b) for b in bindings if b.function) if s), None)
        return Op(
            name=name,
            kind=bindings[0].kind,
            schema=schema,
            signature=signature,
            arguments=arguments,
            returns=returns,
            tags=tuple(dict.fromkeys(t for b in bindings for t in b.tags)),
            defs=tuple(dict.fromkeys(self._def(b, schema) for b in definitions)),
            impls=tuple(dict.fromkeys(impls)),
        )

    def _elsewhere(self, binding: Binding) -> bool:
        builds = self._workbench.builds_at(binding.path, binding.condition)
        return builds is not None and self._workbench.build not in builds

    def _def(self, binding: Binding, schema: str | None) -> OpDef:
        own = normalise_schema_text(binding.schema) if binding.schema else None
        return OpDef(
            binding.path,
            binding.line,
            shown_condition(binding.condition),
            self._workbench.builds_at(binding.path, binding.condition),
            binding.target,
            own if own != schema else None,
        )

    def _impl(self, binding: Binding, arity: int | None) -> OpImpl:
        builds = self._workbench.builds_at(binding.path, binding.condition)
        condition = shown_condition(binding.condition)
        function = binding.function
        if function is None:
            return OpImpl(binding.key, None, binding.path, binding.line, condition, None, builds, "proved")
        if function.lambda_span is not None:
            line = self._workbench.files.view(binding.path).blanked.line
            start, end = function.lambda_span
            return OpImpl(
                binding.key,
                function.name,
                binding.path,
                binding.line,
                condition,
                HostRef(binding.path, line(start), line(end - 1)),
                builds,
                "proved",
            )
        hosts = hosts_of(self._workbench, binding, arity)
        if not hosts:
            if builds != () and runs_nothing(self._workbench, binding) is None:
                self._gaps.append(
                    Gap(
                        "no-body",
                        Span(binding.path, binding.line, binding.line),
                        f"{binding.name}: {without_body(self._workbench, binding)}",
                    )
                )
            return OpImpl(binding.key, function.name, binding.path, binding.line, condition, None, builds, "proved")
        host = hosts[0].function
        return OpImpl(
            binding.key,
            function.name,
            binding.path,
            binding.line,
            condition,
            HostRef(hosts[0].path, host.line, host.end_line),
            builds,
            "proved" if len(hosts) == 1 else "possible",
        )

    def _signature(self, binding: Binding) -> str | None:
        hosts = hosts_of(self._workbench, binding, None) if binding.function.lambda_span is None else ()
        if not hosts:
            return None
        return signature_text(hosts[0])


def signature_text(candidate: Candidate) -> str:
    """A function's C++ signature on one line."""
    function = candidate.function
    parameters = ", ".join(f"{p.type} {p.name}".strip() for p in function.parameters)
    return f"{function.return_type} {function.qualified_name}({parameters})".strip()


def hosts_of(workbench: Workbench, binding: Binding, arity: int | None) -> tuple[Candidate, ...]:
    """The definitions that a binding's function can mean, in the build that the binding belongs to."""
    function = binding.function
    if function is None or function.lambda_span is not None:
        return ()
    unit = workbench.unit(build_for(workbench, binding))
    found: tuple[Candidate, ...] = ()
    for root in _roots(workbench, binding.path):
        context = Context(binding.path, root, binding.scope)
        found = unit.resolver.function(function.name, context, None, kernel=False).candidates
        if not found and "::" in function.name:
            # A method that the class inherits is bound by the derived class's name.
            owner, _, method = function.name.rpartition("::")
            found = unit.resolver.method(method, owner, context).candidates
        if found:
            break
    if len(found) > 1:
        wanted = function.arity if function.arity is not None else arity
        fitting = tuple(c for c in found if wanted is not None and len(c.function.parameters) == wanted)
        found = fitting or found
    return found


def _roots(workbench: Workbench, path: str) -> Iterator[str]:
    """The files from which a registration's names can be seen: its own, or those whose block includes it."""
    yield path
    yield from (includer for includer in workbench.index.includers(path) if includer != path)


def runs_nothing(workbench: Workbench, binding: Binding) -> str | None:
    """Why no function of the source runs for a class binding: it exposes a data member, or the compiler makes the
    constructor; None where a function does run."""
    name = binding.function.name if binding.function else ""
    member = data_member(workbench, binding)
    if member is not None:
        return f"{name} is a data member ({member}): no function runs"
    parts = name.split("::")
    cls = parts[-1].split("<")[0]
    if len(parts) > 1 and parts[-2].split("<")[0] == cls and not workbench.index.functions(cls):
        found = workbench.index.entries(cls, ("class",), lambda facts: facts.classes)
        where = next((f"{path}:{c.line}" for path, c in found if c.body_end), None)
        if where is not None:
            return f"{cls} ({where}) has no constructor of its own: one that the compiler makes runs"
    return None


def data_member(workbench: Workbench, binding: Binding) -> str | None:
    """``path:line`` of the data member that a class binding exposes; None where it binds anything else."""
    parts = binding.function.name.split("::") if binding.function else []
    if len(parts) < 2 or parts[-1] not in workbench.index.names_of_kind("variable"):
        return None
    found = workbench.index.entries(parts[-1], ("variable",), lambda facts: facts.variables)
    return next((f"{path}:{v.line}" for path, v in found if v.scope[-1:] == (parts[-2],)), None)


def without_body(workbench: Workbench, binding: Binding) -> str:
    """Why a binding has no host function, with the declaration that is all there is of it."""
    name = binding.function.name if binding.function else "the function"
    nothing = runs_nothing(workbench, binding)
    if nothing is not None:
        return nothing
    if name == "lambda":
        return "a lambda that a macro writes is bound here: it is not followed"
    text = f"{name} is bound here, but its body is not in the source"
    declared = None
    for path, function in workbench.index.functions(name.split("::")[-1]):
        absent = workbench.absent(path) if function.body_end else None
        if absent is not None:
            return f"{name} is bound here, and {absent}"
        if not function.body_end and declared is None:
            declared = f"{text} (declared at {path}:{function.line})"
    return declared or text


def build_for(workbench: Workbench, binding: Binding) -> str:
    """The build to read a binding's function in: the one asked for where the binding is in it."""
    builds = workbench.builds_at(binding.path, binding.condition)
    return workbench.build if not builds or workbench.build in builds else builds[0]
