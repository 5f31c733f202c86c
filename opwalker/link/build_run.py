"""The CMake interpreter: runs a tree of commands on three-valued conditions and reports what is done to targets.

In: the build files of a tree, parsed, and the seeds of one kind of build. Out: events. Both sides of an undecided
condition are run (``build_guard``). Loops, calls and steps are bounded; nothing is read from disk or executed.
What each command does is handed in (``build_cmake`` collects it); here stand files, conditions, loops and calls.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

from opwalker.link.build_condition import Answer, evaluate
from opwalker.link.build_guard import Guard, LimitReached, guard_text
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_state import Scope, State
from opwalker.link.build_tree import BINARY, ROOT, Tree, absolute
from opwalker.link.build_values import MARK, Argument, Item, Value, is_unknown
from opwalker.model.build import BuildArgument, BuildCommand, BuildFile

MAX_STEPS = 20_000
MAX_CALLS = 40
MAX_ROUNDS = 1_000

#: A function that only computes is given up when it leaves more conditions undecided than this.
MAX_FORKS = 24

#: Commands that do no more than compute.
COMPUTING = frozenset(
    (
        "set unset list string math if elseif else foreach while break continue return message block"
        " get_filename_component separate_arguments cmake_parse_arguments cmake_policy"
    ).split()
)

#: How a block ended.
NEXT, RETURN, BREAK, CONTINUE = "next", "return", "break", "continue"


class Run(State):
    """One evaluation of one entry file for one kind of build.

    ``handlers`` are the commands by lower-case name; one gives how the block ends, or None to go on.
    """

    def __init__(
        self,
        files: Mapping[str, BuildFile],
        tree: Tree,
        seeds: Seeds,
        handlers: Mapping[str, Callable[[Run, BuildCommand], str | None]],
    ) -> None:
        super().__init__(tree, seeds)
        self.files = files
        self.handlers = handlers
        #: The files that were evaluated, in order.
        self.entered: list[str] = []
        self._depth = 0
        self._steps = 0
        self._computing: dict[str, tuple[BuildArgument, ...] | None] = {}
        self._given_up: set[str] = set()

    # --- files -------------------------------------------------------------------------------------------------

    def enter(self, path: str) -> None:
        """Evaluate an entry file (a path of the tree); ``directory`` becomes its folder."""
        self.directory = absolute(posixpath.dirname(path))
        top = {"CMAKE_SOURCE_DIR": self.directory, "CMAKE_BINARY_DIR": BINARY, "CMAKE_COMMAND": "cmake"}
        for name, text in top.items():
            self.put(name, (Item(text),))
        self.run_folder(path)

    def run_folder(self, path: str) -> None:
        """Evaluate the ``CMakeLists.txt`` of a folder in the current scope, and close the folder."""
        here = self.directory
        binary = BINARY + here.removeprefix(ROOT)
        for name, text in (("CMAKE_CURRENT_SOURCE_DIR", here), ("CMAKE_CURRENT_BINARY_DIR", binary)):
            self.put(name, (Item(text),))
        self.run_file(path)
        for language in ("C", "CXX", "CUDA", "HIP"):
            value = self.lookup(f"CMAKE_{language}_FLAGS")
            if value:
                self.report("folder-options", language, value)

    def run_file(self, path: str) -> None:
        """Run the commands of a file in the current scope."""
        parsed = self.files.get(path)
        if parsed is None or len(self.entered) > 400 or self._depth > MAX_CALLS:
            return
        self.entered.append(path)
        outer = self.file, self.line, self.lookup("CMAKE_CURRENT_LIST_DIR")
        self._show_file(path)
        self._depth += 1
        try:
            self.run_block(parsed.commands)
        finally:
            self._depth -= 1
            self.file, self.line = outer[:2]
            self.put("CMAKE_CURRENT_LIST_DIR", outer[2] or ())

    def _show_file(self, path: str) -> None:
        self.file = path
        self.put("CMAKE_CURRENT_LIST_DIR", (Item(absolute(posixpath.dirname(path))),))
        self.put("CMAKE_CURRENT_LIST_FILE", (Item(absolute(path)),))

    # --- control -----------------------------------------------------------------------------------------------

    def run_block(self, commands: Sequence[BuildCommand], start: int = 0) -> str:
        """Run commands from ``start`` on; gives how the block ended."""
        index = start
        while index < len(commands):
            command = commands[index]
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise LimitReached
            if command.name == "if":
                end = index + 1
                while end < len(commands) and commands[end].name in ("elseif", "else"):
                    end += 1
                status = self._run_if(commands, index, end)
                if status is not None:
                    return status
                index = end
                continue
            status = self.run_command(command)
            if status != NEXT:
                return status
            index += 1
        return NEXT

    def run_command(self, command: BuildCommand) -> str:
        self.line = command.line
        name = command.name
        if name in self.commands:
            self.call(name, self.arguments(command))
            return NEXT
        handler = self.handlers.get(name)
        return (handler(self, command) if handler else None) or NEXT

    def test(self, command: BuildCommand) -> tuple[Answer, tuple]:
        """Evaluate the condition of a command; the second part identifies it for the branches."""
        self.line = command.line
        self.reads = []
        try:
            answer = evaluate(self.arguments(command), self)
            identity = () if answer.truth is not None else (answer.negated or answer.text, tuple(self.reads))
        finally:
            self.reads = None
        return answer, identity

    def _run_if(self, commands: Sequence[BuildCommand], start: int, end: int) -> str | None:
        """Run the parts of an ``if``. None: go on behind it; else the whole block is done with this status.

        A way that leaves the block takes the rest of the block out of the other ways, so the rest is run inside them.
        """
        ways: list[tuple[Guard, BuildCommand | None]] = []
        reached: Guard = ()
        for part in commands[start:end]:
            if part.name == "else":
                ways.append((reached, part))
                break
            answer, identity = self.test(part)
            truth = answer.truth
            if truth is None:
                literal = self.branches.literal(identity, answer.negated or answer.text)
                literal = literal.negated() if answer.negated else literal
                truth = self.branches.decided(literal)
                if truth is None:
                    ways.append(((*reached, literal), part))
                    reached = (*reached, literal.negated())
                    continue
            if truth:
                ways.append((reached, part))
                break
        else:
            ways.append((reached, None))
        if len(ways) == 1:
            part = ways[0][1]
            status = self.run_block(part.body) if part else NEXT
            return status if status != NEXT else None
        return self._run_ways(ways, commands, end)

    def _run_ways(self, ways: list[tuple[Guard, BuildCommand | None]], commands, end: int) -> str | None:
        leaves = any(part is not None and _leaves(part.body) for _, part in ways)
        here = self.file, self.line

        def runner(part: BuildCommand | None) -> Callable[[], str]:
            def run() -> str:
                self.file, self.line = here
                status = self.run_block(part.body) if part else NEXT
                return self.run_block(commands, end) if leaves and status == NEXT else status

            return run

        results = self.branches.run([(literals, runner(part)) for literals, part in ways])
        statuses = {status for _, status in results}
        if statuses == {NEXT}:
            return NEXT if leaves else None
        if len(statuses) == 1:
            return statuses.pop()
        return NEXT

    def run_loop(self, rounds: Sequence[tuple[Guard, Callable[[], None]]], body: Sequence[BuildCommand]) -> str:
        """Run a loop body once for each round; a guarded round may not take place."""
        for number, (guard, prepare) in enumerate(rounds):
            if number >= MAX_ROUNDS:
                self.problem("limit", f"a loop was cut off after {MAX_ROUNDS} rounds")
                break
            statuses: list[str] = []

            def turn(prepare: Callable[[], None] = prepare, statuses: list[str] = statuses) -> None:
                prepare()
                statuses.append(self.run_block(body))

            if guard:
                literal = guard[0]
                if len(guard) > 1:
                    literal = self.branches.literal(("round", guard), guard_text(guard) or "")
                self.branches.run([((literal,), turn), ((literal.negated(),), lambda: None)])
                continue
            turn()
            if statuses and statuses[0] == BREAK:
                break
            if statuses and statuses[0] == RETURN:
                return RETURN
        return NEXT

    # --- functions and macros ----------------------------------------------------------------------------------

    def call(self, name: str, arguments: list[Argument]) -> None:
        definition, file = self.commands[name]
        if self._depth > MAX_CALLS:
            self.problem("limit", f"calls of {name} are nested deeper than {MAX_CALLS}")
            return
        names = [argument.text for argument in definition.arguments[1:]]
        bound: dict[str, Value] = {}
        for position, argument in enumerate(arguments):
            bound[f"ARGV{position}"] = argument.items
            if position < len(names):
                bound[names[position]] = argument.items
        for missing in names[len(arguments) :]:
            bound[missing] = ()
        bound["ARGC"] = (Item(str(len(arguments))),)
        bound["ARGV"] = tuple(item for argument in arguments for item in argument.items)
        bound["ARGN"] = tuple(item for argument in arguments[len(names) :] for item in argument.items)
        outer = self.file, self.line, self.bound, self.site, self.scope
        self.site = self.site or (self.file, self.line)
        self.file = file
        self._depth += 1
        try:
            if definition.name == "macro":
                self.bound = bound
                self.run_block(definition.body)
            else:
                self.bound = None
                self.scope = Scope(self.scope)
                self.scope.vars.update(bound)
                self.branches.born(self.scope.vars)
                self.put("CMAKE_CURRENT_FUNCTION_LIST_DIR", (Item(absolute(posixpath.dirname(file))),))
                self._run_function(name, definition)
        finally:
            self._depth -= 1
            self.file, self.line, self.bound, self.site, self.scope = outer

    def _run_function(self, name: str, definition: BuildCommand) -> None:
        """Run a function; one that only computes, on data that leave too much undecided, gives unknown results."""
        results = self._results_of(name, definition)
        if results is None:
            self.run_block(definition.body)
            return
        undecided = any(is_unknown(item.text) for value in self.scope.vars.values() for item in value)
        if undecided and name in self._given_up:
            done = False
        else:
            done = self.branches.attempt(lambda: self.run_block(definition.body), MAX_FORKS)
        if not done:
            self._given_up.add(name)
            for result in results:
                self.put(result, (self.unknown(result),), parent=True)

    def _results_of(self, name: str, definition: BuildCommand) -> list[str] | None:
        """The variables that a function sets for its caller, or None if it does more than that."""
        if name not in self._computing:
            outputs = _outputs(definition.body, self.commands)
            self._computing[name] = outputs
        outputs = self._computing[name]
        if outputs is None:
            return None
        arguments = BuildCommand("", outputs, definition.line)
        names = [argument.word for argument in self.arguments(arguments)]
        return None if any(MARK in result for result in names) else names


def _outputs(
    commands: Sequence[BuildCommand], known: Mapping[str, tuple[BuildCommand, str]]
) -> tuple[BuildArgument, ...] | None:
    """The names that are set with PARENT_SCOPE, as written, or None if something else than computing is done."""
    found: list[BuildArgument] = []
    for command in commands:
        if command.name not in COMPUTING and command.name not in known:
            return None
        if command.name == "set" and command.arguments and command.arguments[-1].text == "PARENT_SCOPE":
            found.append(command.arguments[0])
        body = known[command.name][0].body if command.name in known else command.body
        inner = _outputs(body, {}) if body else ()
        if inner is None:
            return None
        if command.name not in known:
            found.extend(inner)
    return tuple(found)


def _leaves(commands: Sequence[BuildCommand]) -> bool:
    """True if a ``return``, ``break`` or ``continue`` of the enclosing block stands in these commands."""
    for command in commands:
        if command.name in (RETURN, BREAK, CONTINUE):
            return True
        if command.name in ("if", "elseif", "else") and _leaves(command.body):
            return True
        if command.name in ("foreach", "while") and _returns(command.body):
            return True
    return False


def _returns(commands: Sequence[BuildCommand]) -> bool:
    return any(c.name == RETURN or (c.body and c.name != "function" and _returns(c.body)) for c in commands)
