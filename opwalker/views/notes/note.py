"""A walk as a note, in the order of a good reading.

In: a walk and the build that is read for. Out: a ``Note``: entry point → shapes and layout → checks, device and
stream → ownership and lifetimes → synchronisation points → dispatch, launch, computation → open questions.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from opwalker.model.notes import Block, Note, NoteSection, Statements
from opwalker.model.verify import Confirmation
from opwalker.model.walk import Implementation, Ownership, Walk
from opwalker.views.notes.checks import checks_section
from opwalker.views.notes.choices import dispatch_section
from opwalker.views.notes.device import kernel_sections
from opwalker.views.notes.entry import contract_section, entry_section, summary
from opwalker.views.notes.launching import launch_section
from opwalker.views.notes.outline import class_blocks, outline_blocks
from opwalker.views.notes.owning import ownership_section
from opwalker.views.notes.path import path_diagram
from opwalker.views.notes.shapes import shapes_section
from opwalker.views.notes.sync import synchronisation_section
from opwalker.views.notes.words import code, marked, statement


def note_of(walk: Walk, build: str, confirmed: Sequence[Confirmation] = ()) -> Note:
    """The note of a walk. Of several implementations the one of ``build`` is told in full, the others are named.
    ``confirmed`` is where the reference kernel held."""
    chosen = _chosen(walk, build) if walk.entry is None or walk.entry.kind != "file" else None
    sections: list[NoteSection | None] = [entry_section(walk)]
    if walk.op is not None:
        sections.append(contract_section(walk.op, chosen))
    if walk.class_view is not None:
        sections.append(NoteSection("class", f"The {walk.class_view.kind}", class_blocks(walk.class_view)))
    elif walk.outline and chosen is None:
        sections.append(NoteSection("outline", "In reading order", outline_blocks(walk.outline, walk.entry)))
    if chosen is not None:
        sections.append(_path(walk, chosen, build))
        sections.append(shapes_section(chosen))
        sections.append(checks_section(chosen))
    # What neither launches, copies nor holds anything has nothing to do with what its neighbours hold.
    idle = chosen is not None and not chosen.launches and all(end.kind == "host" for end in chosen.terminals)
    sections.append(ownership_section(_own(walk, chosen), beside=not idle))
    sections.append(synchronisation_section(walk))
    if chosen is not None:
        sections.append(dispatch_section(chosen))
        sections.append(launch_section(chosen))
        sections += kernel_sections(chosen, walk.synchronisation)
    sections += [_confirmed(walk, confirmed), _open_questions(walk)]
    return Note(
        name=walk.op.name if walk.op else walk.entry.name if walk.entry else "",
        kind=walk.op.kind if walk.op else walk.entry.kind if walk.entry else "",
        source=walk.source,
        summary=summary(walk, chosen),
        sections=tuple(section for section in sections if section is not None),
        kernels=len(chosen.kernels) if chosen else 0,
        gaps=len(walk.gaps),
    )


def _chosen(walk: Walk, build: str) -> Implementation | None:
    own = [one for one in walk.implementations if one.builds is None or build in one.builds]
    # The device's own implementation says more than one that only shapes a result.
    return next(iter(sorted(own or walk.implementations, key=lambda one: not one.launches)), None)


def _own(walk: Walk, chosen: Implementation | None) -> Ownership:
    """What a walk holds, without what calls beside another implementation hold."""
    if chosen is None or chosen.host is None:
        return walk.ownership
    foreign = {one.host.file for one in walk.implementations if one.host is not None} - {chosen.host.file}
    return replace(
        walk.ownership,
        holdings=tuple(one for one in walk.ownership.holdings if one.file not in foreign),
        beside=tuple(one for one in walk.ownership.beside if one.file not in foreign),
    )


def _path(walk: Walk, chosen: Implementation, build: str) -> NoteSection:
    blocks: list[Block] = [path_diagram(walk, chosen)]
    others = [one for one in walk.implementations if one is not chosen]
    said = []
    other_builds = [one for one in chosen.builds or () if one != build]
    if other_builds and build in (chosen.builds or ()):
        # What is under `#ifdef`, as the types of a dispatch, is what this build compiles.
        names = ", ".join(other_builds)
        said.append(statement(f"Read as the build for {build} compiles it; what {names} compiles may differ."))
    for one in others:
        host = (code(one.host.name),) if one.host else ("a function that is not in this source",)
        where = f" in the build for {', '.join(one.builds)}" if one.builds else ""
        key = (code(one.key),) if one.key else ("every key",)
        said.append(statement("Also implemented for ", *key, " by ", *host, f"{where}.", at=[one.registered_at]))
    if said:
        blocks.append(Statements(tuple(said)))
    return NoteSection("path", "The path", tuple(blocks))


def _confirmed(walk: Walk, confirmed: Sequence[Confirmation]) -> NoteSection | None:
    said = []
    if walk.reference_kernel:
        said.append(
            statement(
                "opwalker's own kernel for such an op is ", code(walk.reference_kernel), ": ",
                code(f"opwalker verify {walk.reference_kernel}"), " builds and runs it, and with ", code("--library"),
                " a library's op under the same contract.",
            )
        )  # fmt: skip
    for one in confirmed:
        where = f"by emulation on a {one.device.name}" if one.device.kind != "gpu" else f"on an {one.device.name}"
        wrong = f", and {one.wrong_refuted} wrong variants of it were refuted" if one.wrong_refuted else ""
        said.append(statement(f"It held in {one.cases} cases {where} on {one.date}{wrong}."))
    title = "Confirmed by" if confirmed else "Reference kernel"
    return NoteSection("confirmed", title, (Statements(tuple(said)),)) if said else None


def _open_questions(walk: Walk) -> NoteSection:
    if not walk.gaps:
        return NoteSection("questions", "Open questions", (Statements((statement("None: every step was followed."),)),))
    said = tuple(
        statement(f"{gap.kind.replace('-', ' ').capitalize()}: ", marked(gap.reason), at=[gap.span])
        for gap in walk.gaps
    )
    return NoteSection("questions", "Open questions", (Statements(said),))
