"""The whole flow on one page: a source opened, indexed, joined, and asked.

``source → facts → link → expand → views``. Every command of the program calls one function here; nothing here decides
how an answer looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from opwalker.asking import OpsTable, Options, Progress, Say, Session, asked
from opwalker.errors import InputError, InternalError
from opwalker.model.walk import KernelsResult, Op, OpsResult, SourceInfo, Walk

if TYPE_CHECKING:
    from opwalker.model.audit import AuditResult
    from opwalker.model.check import CheckOptions, CheckResult, Rule
    from opwalker.model.diff import DiffResult
    from opwalker.model.notes import Note
    from opwalker.model.patterns import PatternQuestion, PatternSearch
    from opwalker.model.verify import VerifyReport
    from opwalker.views.diff import Version
    from opwalker.views.joined import NativeSide
    from opwalker.views.pattern_pages import Page
    from opwalker.views.verify.plan import Known, Plan

    #: Reads a file of the source by its path.
    Text = Callable[[str], str]

__all__ = [
    "OpsTable",
    "Options",
    "Session",
    "audit",
    "build_index",
    "check",
    "diff",
    "dump",
    "kernels",
    "list_ops",
    "load_rules",
    "notes",
    "patterns",
    "verify",
    "walk",
]


def list_ops(
    options: Options,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    progress: Progress = None,
    say: Say = None,
) -> OpsResult:
    """Every op of a source."""
    return asked(options, progress, say, lambda session: _list_ops(session, kind, namespace))


def _list_ops(session: Session, kind: str | None, namespace: str | None) -> OpsResult:
    table = session.ops()
    chosen = tuple(op for op in table.ops if _chosen(op, kind, namespace))
    return OpsResult(
        source=session.source,
        ops=chosen,
        gaps=table.gaps,
        files_read=sum(count for _, count in session.report.files),
        looked_for=LOOKED_FOR,
    )


#: What a registration can be, in words, for an answer that is empty.
LOOKED_FOR = (
    "TORCH_LIBRARY and its family",
    "STABLE_TORCH_LIBRARY",
    "op lists in YAML",
    "torch.library in Python",
    "PYBIND11_MODULE",
    "PyMethodDef tables",
    "TVM-FFI exports",
)


def _chosen(op: Op, kind: str | None, namespace: str | None) -> bool:
    if kind is not None and op.kind != kind:
        return False
    return namespace is None or op.name.startswith((f"{namespace}::", f"{namespace}."))


def walk(options: Options, name: str, *, clang: bool = False, progress: Progress = None, say: Say = None) -> Walk:
    """The walk of one op, file, function, class or kernel; with ``clang``, what a compiler says of it beside it."""

    def answer(session: Session) -> Walk:
        session.single = True
        found = _kept_walk(session, name)
        return _with_clang(session, found) if clang else found

    return asked(options, progress, say, answer)


def _kept_walk(session: Session, name: str) -> Walk:
    """A walk, made once for a source, and the reference kernel that has the same contract."""
    from opwalker.views.passed import with_patterns
    from opwalker.views.reference import with_reference

    return with_reference(session.kept(f"walk:{name}", Walk, lambda: with_patterns(session, _walk(session, name))))


def _with_clang(session: Session, found: Walk) -> Walk:
    """A walk with a second opinion; where there is no clang, the walk as it is and a line about it."""
    from opwalker.facts.clang_headers import find_headers
    from opwalker.facts.clang_library import ClangMissing
    from opwalker.source.compile_database import find_database
    from opwalker.views.clang_report import with_clang
    from opwalker.views.clang_units import Surroundings

    root, options = session.root.path, session.options
    database = find_database(root, session.say)
    around = Surroundings(root, session.builds, database, find_headers(), options.defines)
    told = session.progress and (lambda done, total: session.progress(done, total, "clang"))
    try:
        return with_clang(
            found, session.workbench, around, lambda path: session.known[path][3], session, options.jobs, told
        )
    except ClangMissing as error:
        session.say(f"no second opinion: {error}")
        return found


def _walk(session: Session, name: str) -> Walk:
    from opwalker.views.joined import joined_walk
    from opwalker.views.names import find_op
    from opwalker.views.python_dims import with_dims

    build = session.options.build
    op = None if name in session.known else find_op(session.view.names(), name, build, session.view.op)
    if op is None:
        from opwalker.views.entries import EntryView

        view = EntryView(session.workbench, session.source).walk(name)
        if view is None:
            raise _not_found(session, name)
        return view
    callers = session.view.callers(op)
    found = with_dims(joined_walk(session.source, build, op, _native(session, op), callers), callers, session.text)
    builds = {build for one in (*op.defs, *op.impls) for build in one.builds or ()}
    if builds and session.options.build not in builds:
        note = f"no {session.options.build} build registers this op; shown as the build for {', '.join(sorted(builds))}"
        return replace(found, notes=(*found.notes, note))
    return found


def _native(session: Session, op: Op) -> NativeSide:
    """What becomes of an op in C++: kept for as long as no file of C++ changes, nor what its wrappers say of shapes."""
    from opwalker.views.joined import NativeSide
    from opwalker.views.wrapper_shapes import wrappers_say

    wrapper = wrappers_say(op, session.view.callers(op) or op.python, session.text_in_key)
    said = msgspec.msgpack.encode(wrapper).hex() if wrapper else ""

    def follow() -> NativeSide:
        from opwalker.views.walk import WalkView

        return WalkView(session.workbench, session.source).native(op, wrapper)

    return session.kept_native(f"native:{op.name}:{op.schema}:{said}", NativeSide, follow, moves=True)


def _not_found(session: Session, name: str) -> InputError:
    from opwalker.views.asked_places import no_such_place
    from opwalker.views.names import not_found

    missing = no_such_place(name, session.workbench.index, session.known)
    return missing or not_found(name, session.view.names(), session.python.callers, session.text, session.known)


def kernels(
    options: Options,
    op: str | None = None,
    *,
    progress: Progress = None,
    say: Say = None,
) -> KernelsResult:
    """Every kernel of a source, or those that one op reaches."""
    return asked(
        options,
        progress,
        say,
        lambda session: session.kept(f"kernels:{op}", KernelsResult, lambda: _kernels(session, op)),
    )


def _kernels(session: Session, name: str | None) -> KernelsResult:
    from opwalker.ahead import shared_out
    from opwalker.views.kernels import list_kernels
    from opwalker.views.names import find_op

    ops = session.ops().ops
    only = find_op(session.view.names(), name, session.options.build, session.view.op) if name is not None else None
    if name is not None and only is None:
        raise _not_found(session, name)
    return list_kernels(session.workbench, session.source, ops, only, lambda *job: shared_out(session, *job))


def notes(
    options: Options,
    names: Sequence[str],
    everything: bool,
    take: Callable[[Note, Text], None],
    *,
    progress: Progress = None,
    say: Say = None,
) -> SourceInfo:
    """The reading note of each name, or of every op, handed to ``take`` one by one with a reader of the source's files;
    which source they are about."""
    return asked(options, progress, say, lambda session: _notes(session, names, everything, take))


def _notes(session: Session, names: Sequence[str], everything: bool, take: Callable[[Note, Text], None]) -> SourceInfo:
    from opwalker.ahead import made_ahead
    from opwalker.views.confirmed import held
    from opwalker.views.notes.note import note_of

    chosen = list(dict.fromkeys([*names, *((op.name for op in session.ops().ops) if everything else ())]))
    ready = made_ahead(session, chosen, _kept_walk)
    for number, name in enumerate(chosen):
        if session.progress and not ready:
            session.progress(number, len(chosen), name)
        found = _kept_walk(session, name)
        take(note_of(found, session.options.build, held(session.options.cache, found)), session.text)
    return session.source


def check(
    options: Options, chosen: CheckOptions, *, progress: Progress = None, say: Say = None
) -> tuple[CheckResult, Text]:
    """What the rules find in a source, and a reader of the files that the findings lie in."""
    return asked(options, progress, say, lambda session: _check(session, chosen))


def _check(session: Session, chosen: CheckOptions) -> tuple[CheckResult, Text]:
    from opwalker.views.check.check import check_source

    result = check_source(session, load_rules(), chosen)
    texts = {path: session.text(path) for path in {one.file for one in result.findings}}
    return result, lambda path: texts.get(path, "")


def load_rules() -> tuple[tuple[Rule, str], ...]:
    """Every rule with its page, by id. A file of ``rules/`` that is no rule is a fault of this program."""
    import importlib
    from pathlib import Path

    from opwalker import rules

    found = []
    for path in sorted(Path(rules.__file__).parent.glob("*.py")):
        if path.stem.startswith("_"):
            continue
        module = importlib.import_module(f"opwalker.rules.{path.stem}")
        if module.RULE.id != path.stem.replace("_", "-"):
            raise InternalError(f"the rule in rules/{path.name} calls itself {module.RULE.id}")
        found.append((module.RULE, module.__doc__ or ""))
    return tuple(found)


def diff(options: Options, old: str, new: str | None, *, progress: Progress = None, say: Say = None) -> DiffResult:
    """What changed from the source ``old`` to ``new`` (None: the source that the options name)."""
    from opwalker.views.diff import compare

    before = asked(replace(options, source=old), progress, say, _version)
    after = asked(replace(options, source=new) if new is not None else options, progress, say, _version)
    return compare(before, after, options.build)


def _version(session: Session) -> Version:
    from opwalker.model.diff import Survey
    from opwalker.views.diff import Version, ops_of_build
    from opwalker.views.survey import survey

    table = session.ops()
    ops = ops_of_build(table.ops, session.options.build)
    found = session.kept("kernels:None", KernelsResult, lambda: _kernels(session, None))
    ways = session.kept("survey", Survey, lambda: survey(session.workbench, session.source, ops, session.progress))
    return Version(session.source, ops, found.kernels, ways, table.gaps)


def verify(options: Options, plan: Plan, *, progress: Progress = None, say: Say = None) -> VerifyReport:
    """Reference kernels built, run and judged; against a source's documented shapes where the options name one."""
    from opwalker import resources
    from opwalker.source.cache import cache_root
    from opwalker.views.confirmed import note_confirmed
    from opwalker.views.verify.run import Verification

    folder, cache = resources.folder("reference_kernels"), options.cache or cache_root()
    told = (lambda stage, done, total: progress(done, total, stage)) if progress else (lambda *_: None)
    verification = Verification(folder, cache, plan, told)
    own = replace(options, source=str(folder), build="cuda", defines=(), archs=())
    known = asked(own, None, say, lambda session: _known(session, verification.names()))
    if options.source is not None:
        theirs = replace(options, archs=())
        compared = asked(theirs, progress, say, lambda session: _known(session, verification.names(), kernels=False))
        known = {op: replace(one, compared=compared[op].walk if op in compared else None) for op, one in known.items()}
        lacking = ", ".join(op for op in known if op not in compared)
    report = verification.run(known)
    if options.source is not None and lacking:
        note = f"not in {options.source}: {lacking}; the shapes told of these are their reference kernels' own"
        report = replace(report, notes=(*report.notes, note))
    note_confirmed(folder, cache, report)
    return report


def _known(session: Session, names: Mapping[str, tuple[str, ...]], *, kernels: bool = True) -> dict[str, Known]:
    """What a source says of each reference kernel's op, by the first of its names that the source registers."""
    from opwalker.views.verify.plan import Known

    there = {op.name: op for op in session.ops().ops}
    listed = session.kept("kernels:None", KernelsResult, lambda: _kernels(session, None)).kernels if kernels else ()
    found = {}
    for op, candidates in names.items():
        name = next((one for one in candidates if one in there), None)
        if name is not None:
            walked = _kept_walk(session, name)
            found[op] = Known(there[name], walked, tuple(one for one in listed if name in one.ops))
    return found


def audit(
    options: Options,
    names: Sequence[str],
    *,
    op: str | None = None,
    machine: str = "x86_64",
    progress: Progress = None,
    say: Say = None,
) -> AuditResult:
    """What the libraries that ``names`` are contain, beside what their source says; of one op where it is named."""
    from opwalker.auditing import released

    own = released(names) is not None and options.source is None
    chosen = replace(options, source=names[0]) if own else options
    return asked(chosen, progress, say, lambda session: _audit(session, names, op, machine))


def _audit(session: Session, names: Sequence[str], name: str | None, machine: str) -> AuditResult:
    from opwalker.auditing import audit_session
    from opwalker.views.audit.whole import narrowed
    from opwalker.views.names import find_op

    # Python's own ops are in no library: a name that is unique among the others is unique here.
    compiled = [op.name for op in session.ops().ops if op.kind not in ("python", "aten")] if name is not None else []
    only = find_op(compiled, name, session.options.build, session.view.op) if name is not None else None
    if name is not None and only is None:
        raise _not_found(session, name)
    result = audit_session(
        session, names, machine, lambda: session.kept("kernels:None", KernelsResult, lambda: _kernels(session, None))
    )
    return narrowed(result, only.name) if only is not None else result


def build_index(options: Options, *, progress: Progress = None, say: Say = None) -> Any:
    """Index a source; the report of what was read."""
    return asked(options, progress, say, lambda session: session.report)


def dump(
    options: Options, stage: str, path: str | None = None, *, progress: Progress = None, say: Say = None
) -> object:
    """One stage's product as it is: ``source`` (the files), ``facts`` of a path, ``index`` (names and includes)."""
    from opwalker.views.dumped import dumped

    return asked(options, progress, say, lambda session: dumped(session, stage, path))


def patterns(
    options: Options, pages: Sequence[Page], question: PatternQuestion, *, progress: Progress = None, say: Say = None
) -> PatternSearch:
    """Where the patterns of some pages are in a source."""
    return asked(options, progress, say, lambda session: _patterns(session, pages, question))


def _patterns(session: Session, pages: Sequence[Page], question: PatternQuestion) -> PatternSearch:
    from opwalker.views.names import find_op
    from opwalker.views.patterns import search

    name = question.op
    only = find_op(session.view.names(), name, session.options.build, session.view.op) if name is not None else None
    if name is not None and only is None:
        raise _not_found(session, name)
    return search(session, pages, question, only.name if only is not None else None)
