"""The inside of functions as clang reads it: calls and what they resolve to, launches, functions as values.

In: cursors. Out: the uses, values and symbols of ``model.clang``, gathered in ``Bodies``. Templates are read as they
are written; their instances are noted on the way and read at the end: there a call that depends on a parameter has its
target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from opwalker.facts.clang_arguments import spelt
from opwalker.facts.clang_kinds import BREAK, CONTINUE, RECURSE, Kinds
from opwalker.facts.clang_library import Places, visitor_type
from opwalker.model.clang import ClangInstance, ClangSymbol, ClangUse, ClangValue

#: Instances of templates that are looked into, of one template and in all; beyond, the unit is marked as cut.
MOST_OF_ONE = 1000
MOST_INSTANCES = 20_000

#: Candidates of one call that are kept.
_MOST_CANDIDATES = 64

#: What clang calls to hand a launch its configuration: which one depends on the version of CUDA.
_CONFIGURATIONS = ("cudaConfigureCall", "__cudaPushCallConfiguration", "__hipPushCallConfiguration")

#: ``step(cursor, parent)``: whether to go on below the cursor.
Step = Callable[[Any, Any], int]


class Bodies:
    """What was found in the functions of one unit."""

    def __init__(self, cindex: Any, places: Places, kinds: Kinds) -> None:
        self._places = places
        self._kinds = kinds
        self._library = cindex.conf.lib
        self._callback = visitor_type()
        self._by_usr: dict[str, int] = {}
        self._numbers: dict[ClangSymbol, int] = {}
        self.symbols: list[ClangSymbol] = []
        self.uses: dict[ClangUse, None] = {}
        self.values: dict[ClangValue, None] = {}
        self.instances: dict[ClangInstance, None] = {}
        self._kernels: dict[int, bool] = {}
        self._heads: dict[int, list[Any]] = {}
        self._on_device: dict[int, bool] = {}
        self._texts: dict[str, str | None] = {}
        self.lambdas: dict[tuple[str, int], None] = {}
        self._pending: list[Any] = []
        self._instances: dict[int, int] = {}
        self._instance_count = 0
        #: Whether instances were left out because there are too many.
        self.cut = False

    def visit(self, cursor: Any, step: Step) -> None:
        """Calls ``step(child, parent)`` for the children of a cursor; it answers whether to go on below each."""
        unit = cursor._tu
        faults: list[BaseException] = []

        def visitor(child: Any, parent: Any, _: Any) -> int:
            child._tu = unit
            try:
                return step(child, parent)
            except BaseException as error:
                # Through the library's own frames no exception passes: it is taken around them.
                faults.append(error)
                return BREAK

        self._library.clang_visitChildren(cursor, self._callback(visitor), None)
        if faults:
            raise faults[0]

    def read_instances(self) -> None:
        """Reads the instances of templates that were met, and those that they ask for."""
        while self._pending:
            self.visit(self._pending.pop(), self.inside)

    def qualified(self, cursor: Any) -> str:
        """A function's name with its namespaces and classes."""
        parts = [cursor.spelling]
        above = cursor.semantic_parent
        while above is not None and above._kind_id in self._kinds.named_scopes:
            parts.append(above.spelling if above.spelling and "(" not in above.spelling else "(anonymous namespace)")
            above = above.semantic_parent
        return "::".join(reversed(parts))

    # -- expressions ------------------------------------------------------------------------------------------------

    def inside(self, cursor: Any, parent: Any) -> int:
        """Takes in one cursor of a body; to be given to ``visit``."""
        kind = cursor._kind_id
        kinds = self._kinds
        if kind == kinds.call:
            self._call(cursor, parent)
        elif kind in kinds.names:
            target = cursor.referenced
            if target is not None and target._kind_id in kinds.functions:
                self._use("name", cursor, (target,))
            elif target is not None and target._kind_id in kinds.variables and self._holds_function(cursor.type):
                self._applied("name", cursor, target)
        elif kind == kinds.candidates:
            self._overloads(cursor)
        elif kind == kinds.variable:
            if self._holds_function(cursor.type):
                self._value(cursor, cursor)
        elif kind == kinds.binary:
            self._assignment(cursor)
        elif kind == kinds.returned:
            self._value(None, cursor)
        elif kind == kinds.lambda_:
            file, line, here = self.place(cursor.location)
            if here:
                self.lambdas[file, line] = None
        return RECURSE

    def _call(self, cursor: Any, parent: Any) -> None:
        target = cursor.referenced
        if target is not None and target.spelling in _CONFIGURATIONS:
            # The configuration is a call that clang puts inside of a launch.
            if parent is not None and parent._kind_id == self._kinds.call:
                parent._tu = cursor._tu
                self._applied("launch", parent, parent.referenced)
            return
        self._applied("call", cursor, target)

    def _applied(self, kind: str, cursor: Any, target: Any) -> None:
        """A call or launch of ``target``, which may be a function, a variable that holds one, or unknown (None)."""
        if target is None or target._kind_id in self._kinds.functions:
            self._use(kind, cursor, (target,) if target is not None else ())
            if target is not None and target._kind_id == self._kinds.method:
                self._called_back(cursor, target)
            return
        file, line, here = self.place(target.location)
        self._use(kind, cursor, (), through=(file, line) if here else None)

    def _called_back(self, cursor: Any, target: Any) -> None:
        """A method of a library's class template that is made for a class of the tree, and calls the tree's functions:
        ``Function<T>::apply`` runs ``T::forward``. The call stands for these too."""
        holder = target.semantic_parent
        kind = holder.type if holder is not None and holder._kind_id in self._kinds.classes else None
        count = kind.get_num_template_arguments() if kind is not None else 0
        arguments = [kind.get_template_argument_type(number).get_declaration() for number in range(max(0, count))]
        if self.place(target.location)[2] or not any(self.place(one.location)[2] for one in arguments):
            return
        body = target.get_definition()
        found: list[Any] = []

        def look(child: Any, _: Any) -> int:
            if child._kind_id in self._kinds.names:
                named = child.referenced
                if named is not None and named._kind_id in self._kinds.functions and self.place(named.location)[2]:
                    found.append(named)
            return RECURSE

        if body is not None:
            self.visit(body, look)
        for one in found:
            self._use("call", cursor, (one,))

    def _overloads(self, cursor: Any) -> None:
        count = self._library.clang_getNumOverloadedDecls(cursor)
        found = []
        for number in range(min(count, _MOST_CANDIDATES)):
            one = self._library.clang_getOverloadedDecl(cursor, number)
            one._tu = cursor._tu
            if one._kind_id in self._kinds.functions:
                found.append(one)
        if found:
            self._use("name", cursor, tuple(found), dependent=True)

    def _use(
        self,
        kind: str,
        cursor: Any,
        targets: tuple[Any, ...],
        dependent: bool = False,
        through: tuple[str, int] | None = None,
    ) -> None:
        handle, line = self._places.of(cursor.location)
        file, here = self._places.named(handle)
        if not here:
            return
        found = tuple(dict.fromkeys(self._symbol(target) for target in targets))
        if kind == "name" and not (through or any(self.symbols[number].here for number in found)):
            return
        start_handle, start = self._places.of(cursor.extent.start)
        start = start if start_handle == handle else line
        if not dependent:
            self._compiled(file, line, targets, found)
        end = max(line, self._places.of(cursor.extent.end)[1]) if kind == "call" else line
        name = targets[0].spelling if targets else cursor.spelling
        self.uses[ClangUse(kind, name, file, line, start, found, dependent, through, end)] = None

    def place(self, location: Any) -> tuple[str, int, bool]:
        """``(file, line, whether it lies in the tree)``."""
        handle, line = self._places.of(location)
        file, here = self._places.named(handle)
        return file, line, here

    # -- functions as values ----------------------------------------------------------------------------------------

    def _holds_function(self, kind: Any) -> bool:
        made = kind.get_canonical()
        if made._kind_id in self._kinds.arrays:
            made = made.get_array_element_type().get_canonical()
        return made._kind_id in self._kinds.pointers and made.get_pointee()._kind_id in self._kinds.function_types

    def _assignment(self, cursor: Any) -> None:
        left: list[Any] = []

        def look(child: Any, _: Any) -> int:
            left.append(child)
            return BREAK

        self.visit(cursor, look)
        # A comparison of two pointers is a truth value; what has a pointer's type assigns one.
        if left and left[0]._kind_id in self._kinds.names and self._holds_function(cursor.type):
            target = left[0].referenced
            if target is not None and target._kind_id in self._kinds.variables:
                self._value(target, cursor)

    def _value(self, into: Any, cursor: Any) -> None:
        """Notes what goes into a variable, or out by ``return`` (``into`` None)."""
        kinds = self._kinds
        names: list[Any] = []
        calls: list[Any] = []
        variables: list[Any] = []

        def look(child: Any, _: Any) -> int:
            if child._kind_id == kinds.call:
                calls.append(child.referenced)
                return CONTINUE
            if child._kind_id in kinds.names:
                target = child.referenced
                if target is not None and target._kind_id in kinds.functions:
                    names.append(target)
                elif target is not None and target._kind_id in kinds.variables:
                    variables.append(target)
            return RECURSE

        self.visit(cursor, look)
        file, line, here = self.place(cursor.location)
        if not here or not (names or calls or variables):
            return
        held = self.place(into.location) if into is not None else None
        places = dict.fromkeys(self.place(one.location) for one in variables if into is None or one != into)
        value = ClangValue(
            held[:2] if held else None,
            file,
            line,
            self._numbered(names),
            self._numbered(one for one in calls if one is not None and one._kind_id in kinds.functions),
            tuple((where, number) for where, number, in_tree in places if in_tree),
            max(line, self._places.of(cursor.extent.end)[1]),
        )
        if value.names or value.calls or value.variables:
            self.values[value] = None

    def _numbered(self, targets: Iterable[Any]) -> tuple[int, ...]:
        """The symbols of functions, those of the tree alone."""
        found = dict.fromkeys(self._symbol(target) for target in targets)
        return tuple(number for number in found if self.symbols[number].here)

    # -- what is referred to ----------------------------------------------------------------------------------------

    def _symbol(self, target: Any) -> int:
        """The number of a function's symbol. An instance of a template is put on the list of what is to be read."""
        own = target.get_usr()
        number = self._by_usr.get(own)
        if number is not None:
            return number
        template = self._library.clang_getSpecializedCursorTemplate(target)
        pattern = None
        if template is not None and template._kind_id in self._kinds.functions:
            template._tu = target._tu
            pattern = template
        # An explicit specialisation has a definition of its own; an instance stands where its template does.
        body = target.get_definition()
        definition = body if body is not None or pattern is None else pattern.get_definition()
        file, line, here = self.place((definition if definition is not None else target).location)
        usr = own
        if pattern is not None and (definition is None or self._stands_with(pattern, file, line)):
            usr = pattern.get_usr()
        made = ClangSymbol(self.qualified(target), usr, file, line, definition is not None, here)
        number = self._numbers.setdefault(made, len(self._numbers))
        if number == len(self.symbols):
            self.symbols.append(made)
        self._by_usr[own] = number
        if pattern is not None and here:
            if number not in self._kernels:
                children = self.kinds_of_children(target)
                self._kernels[number] = self._kinds.global_ in children
                self._on_device[number] = self._kinds.on_device(children)
            if self._kernels[number]:
                self._texts[own] = spelt(target, self._parameters(number, pattern), self._kinds)
            if body is not None and not self._on_device[number]:
                self._instance(number, body)
        return number

    def kinds_of_children(self, cursor: Any) -> set[int]:
        """The kinds of what stands directly below a cursor: attributes, parameters, the body."""
        found: set[int] = set()

        def look(child: Any, _: Any) -> int:
            found.add(child._kind_id)
            return CONTINUE

        self.visit(cursor, look)
        return found

    def _compiled(self, file: str, line: int, targets: tuple[Any, ...], numbers: tuple[int, ...]) -> None:
        """Notes which instances of kernels a use compiles."""
        if not any(self._kernels.get(number) for number in numbers):
            return
        for target in targets:
            own = target.get_usr()
            if own in self._texts:
                self.instances[ClangInstance(file, line, self._by_usr[own], self._texts[own])] = None

    def _parameters(self, number: int, pattern: Any) -> list[Any]:
        """The types of a template's parameters, as far as they have one."""
        if number not in self._heads:
            found = self._heads[number] = []

            def look(child: Any, _: Any) -> int:
                if child._kind_id in self._kinds.parameters:
                    found.append(child.type.get_canonical())
                return CONTINUE

            self.visit(pattern, look)
        return self._heads[number]

    def _stands_with(self, pattern: Any, file: str, line: int) -> bool:
        definition = pattern.get_definition()
        return self.place((definition if definition is not None else pattern).location)[:2] == (file, line)

    def _instance(self, number: int, body: Any) -> None:
        count = self._instances.get(number, 0)
        if count >= MOST_OF_ONE or self._instance_count >= MOST_INSTANCES:
            self.cut = True
            return
        self._instances[number] = count + 1
        self._instance_count += 1
        self._pending.append(body)
