"""Events to targets: what one evaluation for one kind of build has made.

In: the events of a CMake or Python evaluation. Out: targets of that kind of build, each source and macro with the
condition that is left undecided, and what could not be resolved. Targets that are not compiled (imported, interface)
only pass their macros on.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from opwalker.link.build_cuda import AskedArchitectures, architectures, compiled_for
from opwalker.link.build_events import Event
from opwalker.link.build_flags import LANGUAGES, Guarded, defines_of_definitions, defines_of_options, unwrapped
from opwalker.link.build_guard import Guard, either_text, excludes, guard_text, join, put_together, without
from opwalker.link.build_tree import BINARY, ROOT, Tree, resolve
from opwalker.link.build_values import MARK, Item, is_unknown, shown
from opwalker.model.build import TARGET_KINDS, Define, Target, TargetSource
from opwalker.notation.regex import Regex

#: Sources that only a device compiler takes.
DEVICE_SUFFIXES = (".cu", ".hip")

#: Device sources that a build writes beside the file that it copies them from.
_COPIED_FROM = {".cu": (".cpp", ".cc"), ".hip": (".cu", ".cpp", ".cc")}

_IDENTIFIER = Regex(r"[A-Za-z_]\w*\Z")
_MAX_LINK_DEPTH = 20

Problems = list[tuple[str, int, str, str]]


class _Making:
    """One definition of a target and the events that are about it."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self.events: list[Event] = [event]

    def of(self, *kinds: str) -> Iterator[Event]:
        return (event for event in self.events if event.what in kinds)

    @property
    def guard(self) -> Guard:
        return self.event.guard


class Assembly:
    """The targets of one evaluation. ``install_dir`` is the package folder that a wheel's install goes to; ``cuda``
    are the architectures asked for; without, it is not looked at which ones a source is compiled for."""

    def __init__(
        self,
        events: list[Event],
        tree: Tree,
        build: str,
        install_dir: str | None = None,
        cuda: AskedArchitectures | None = None,
    ) -> None:
        self._cuda = cuda
        self._tree = tree
        self._build = build
        self._install_dir = install_dir
        self._folder = [event for event in events if event.what.startswith("folder-")]
        self._files: dict[str, list[Event]] = {}
        self._made: dict[str, list[_Making]] = {}
        self._aliases: dict[str, str] = {}
        self.problems: Problems = []
        for event in events:
            self._sort_in(event)

    def _sort_in(self, event: Event) -> None:
        if event.what == "target":
            self._make(event)
        elif event.what == "alias":
            self._aliases[event.name] = event.detail
        elif event.what == "file":
            self._files.setdefault(event.name, []).append(event)
        elif not event.what.startswith("folder-"):
            for making in self._makings(event.name, event.guard):
                making.events.append(event)

    def _make(self, event: Event) -> None:
        group = self._made.setdefault(event.name, [])
        for making in group:
            # Both ways of a condition that only changes how the target is linked make the same target.
            same = making.event._replace(guard=()) == event._replace(guard=())
            guard = put_together(making.guard, event.guard) if same else None
            if guard is not None:
                making.event = event._replace(guard=guard)
                making.events[0] = making.event
                return
        group.append(_Making(event))

    def _makings(self, name: str, guard: Guard) -> list[_Making]:
        found = self._made.get(self._aliases.get(name, name), [])
        return [making for making in found if not excludes(making.guard, guard)]

    def targets(self) -> list[Target]:
        """Everything that this build compiles, in the order in which it was made."""
        makings = [making for group in self._made.values() for making in group if making.event.detail in TARGET_KINDS]
        return [self._target(making) for making in makings]

    def folder_defines(self, directory: str) -> tuple[Define, ...]:
        """The macros that all targets of a folder get."""
        return _unique(self._folder_macros(directory))

    def _folder_macros(self, directory: str) -> list[Guarded]:
        found: list[Guarded] = []
        for event in self._folder:
            if directory == event.directory or directory.startswith(event.directory + "/"):
                found.extend(_defines(event, ()))
        return found

    def _target(self, making: _Making) -> Target:
        event = making.event
        name = self._output_name(making)
        defines = self._folder_macros(event.directory)
        for given in making.of("defines", "options", "property"):
            if given.detail != "INTERFACE":
                defines.extend(_defines(given, making.guard))
        includes = [e for e in self._folder if e.what == "folder-includes" and _within(event, e)]
        includes.extend(e for e in making.of("includes") if e.detail != "INTERFACE")
        for passed in self._passed_on(making, 0, set()):
            defines.extend(_defines(passed, making.guard))
            if passed.what == "includes":
                includes.append(passed)
        return Target(
            name=name.rpartition(".")[2],
            module=name if "." in name else self._module(making, name),
            builds=(self._build,),
            sources=self._sources(making),
            defines=_unique(defines),
            include_dirs=tuple(dict.fromkeys(path for e in includes for path in self._include_paths(e))),
            file=event.file,
            line=event.line,
            condition=guard_text(making.guard),
            kind=event.detail,
        )

    def _output_name(self, making: _Making) -> str:
        for event in making.of("property"):
            if event.detail in ("OUTPUT_NAME", "LIBRARY_OUTPUT_NAME") and len(event.items) == 1:
                text = event.items[0].text
                if MARK not in text and "$<" not in text:
                    return text
        return making.event.name

    def _module(self, making: _Making, name: str) -> str | None:
        if making.event.detail != "module":
            return None
        for event in making.of("install"):
            folders = [part for part in event.detail.split("/") if part not in ("", ".")]
            if self._install_dir:
                folders = [*self._install_dir.split("/"), *folders]
            if folders and all(_IDENTIFIER.match(part) for part in folders):
                return ".".join([*folders, name])
        return None

    def _passed_on(self, making: _Making, depth: int, seen: set[str]) -> Iterator[Event]:
        """What the targets that are linked to pass on to this one."""
        if depth > _MAX_LINK_DEPTH:
            return
        for link in making.of("links"):
            if depth and not link.detail:
                continue
            for item in link.items:
                name = self._aliases.get(item.text, item.text)
                if name in seen or name not in self._made:
                    continue
                seen.add(name)
                for linked in self._makings(name, link.guard):
                    yield from (e for e in linked.of("defines", "options", "includes") if e.detail)
                    yield from self._passed_on(linked, depth + 1, seen)

    # --- sources -----------------------------------------------------------------------------------------------

    def _sources(self, making: _Making) -> tuple[TargetSource, ...]:
        found: dict[str, list[tuple[str, int, Guard]]] = {}
        for event in making.of("target", "sources"):
            for item in event.items:
                path = self._source_path(making, event, item)
                if path is None:
                    continue
                guard = without(join(event.guard, item.guard), making.guard)
                file, line = (item.file, item.line) if item.file else (event.file, event.line)
                found.setdefault(path, []).append((file, line, guard))
        return tuple(self._one_source(path, group, making) for path, group in found.items())

    def _one_source(self, path: str, group: list[tuple[str, int, Guard]], making: _Making) -> TargetSource:
        guard = making.guard
        defines: list[Guarded] = []
        for event in self._files.get(f"{ROOT}/{path}", ()):
            if not excludes(event.guard, guard):
                defines.extend(_defines(event, guard))
        file, line, _ = group[0]
        archs = self._compiled_for(path, making) if path.endswith(DEVICE_SUFFIXES) else ()
        return TargetSource(path, file, line, either_text(g for _, _, g in group), _unique(defines), archs)

    def _compiled_for(self, path: str, making: _Making) -> tuple[str, ...]:
        """The architectures that the flags of a device source name: its own, its target's and its folder's; all that
        were asked for where neither a flag nor a property says."""
        if self._cuda is None:
            return ()
        events = [e for e in self._files.get(f"{ROOT}/{path}", ()) if not excludes(e.guard, making.guard)]
        events.extend(making.of("options", "property"))
        if not self._cuda.assumed:
            events.extend(e for e in self._folder if e.what == "folder-options" and _within(making.event, e))
        # A property that is set later takes the place of the one before.
        named = [[item.text for item in event.items] for event in making.of("architectures")][-1:]
        if any(
            compiled_for([item.text]) and (without(event.guard, making.guard) or item.guard)
            for event in events
            for item in event.items
        ):
            return ()  # one that is there under a condition: the list is not known
        told = compiled_for(item.text for event in events for item in event.items)
        if not told and named and named[0]:
            return architectures(named[0])
        return told or (() if self._cuda.assumed else self._cuda.names)

    def _source_path(self, making: _Making, event: Event, item: Item) -> str | None:
        text = item.text
        if text.startswith("$<") or not text:
            return None
        if is_unknown(text):
            message = f"a source of {self._output_name(making)} is {shown(text)}, which no build file sets"
            self.problems.append((item.file or event.file, item.line or event.line, "unresolved", message))
            return None
        path = resolve(text, event.directory)
        if not self._tree.is_file(path) and item.origin and not is_unknown(item.origin):
            # A generated copy of a file of the tree: the file that it was made from is the one to read.
            origin = resolve(item.origin, event.directory)
            path = origin if self._tree.is_file(origin) else path
        return _shown_path(path if self._tree.is_file(path) is not False else self._twin(path))

    def _twin(self, path: str) -> str:
        """The file that a missing one is a copy of: the same name with another suffix; else the path itself."""
        stem, suffix = posixpath.splitext(path)
        for other in _COPIED_FROM.get(suffix, ()):
            if self._tree.is_file(stem + other):
                return stem + other
        return path

    def _include_paths(self, event: Event) -> Iterator[str]:
        for text, _, _, _ in unwrapped(event.items):
            if not is_unknown(text):
                yield _shown_path(resolve(text, event.directory))
            else:
                yield shown(text)


def _within(inner: Event, outer: Event) -> bool:
    return inner.directory == outer.directory or inner.directory.startswith(outer.directory + "/")


def _shown_path(path: str) -> str:
    if path == ROOT:
        return "."
    if path.startswith(ROOT + "/"):
        return path[len(ROOT) + 1 :]
    if path.startswith(BINARY):
        return "${CMAKE_BINARY_DIR}" + path[len(BINARY) :]
    return shown(path)


_READERS = {
    "defines": defines_of_definitions,
    "options": defines_of_options,
    "folder-defines": defines_of_definitions,
    "COMPILE_DEFINITIONS": defines_of_definitions,
    "INTERFACE_COMPILE_DEFINITIONS": defines_of_definitions,
    "COMPILE_OPTIONS": defines_of_options,
    "COMPILE_FLAGS": defines_of_options,
}


def _defines(event: Event, context: Guard) -> list[Guarded]:
    """The macros of one event; conditions that ``context`` says already are left out."""
    if event.what == "folder-options":
        reader = partial(defines_of_options, language=event.name or None)
    elif event.what == "options" and event.detail in LANGUAGES:
        reader = partial(defines_of_options, language=event.detail)
    else:
        reader = _READERS.get(event.detail if event.what in ("property", "file") else event.what)
    if reader is None:
        return []
    items = tuple(i._replace(guard=without(i.guard, context)) if i.guard else i for i in event.items)
    return reader(items, without(event.guard, context), event.file, event.line)


def _unique(defines: Iterable[Guarded]) -> tuple[Define, ...]:
    """Each macro once for a value and language; several conditions become one."""
    groups: dict[tuple[str, str | None, str | None], list[Guarded]] = {}
    for define, guard in defines:
        groups.setdefault((define.name, define.value, define.language), []).append((define, guard))
    return tuple(replace(group[0][0], condition=either_text(g for _, g in group)) for group in groups.values())


def needs_device(target: Target) -> bool:
    """True if a source that is there in any case only compiles for a device."""
    return any(s.condition is None and s.path.endswith(DEVICE_SUFFIXES) for s in target.sources)
