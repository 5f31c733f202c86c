"""Answers whose lines are moved: every number in them is a line or is known to be none."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from opwalker.asking import Options, Session
from opwalker.facts.cpp_lines import read_lines
from opwalker.link.moved import LINES, NUMBERS, moved
from opwalker.model.kernel import TextFact
from opwalker.model.walk import Gap, Host, Op, PathStep, Span, Terminal
from opwalker.views.following import HostSide
from opwalker.views.joined import NativeSide
from opwalker.views.passed import Passed
from opwalker.views.walk import WalkView
from opwalker.views.walk_kernels import KernelSide

KITS = Path(__file__).resolve().parents[2] / "fixtures" / "libraries"


def records(kind: type) -> Iterator[type]:
    """The records that an answer may hold."""
    seen: list = []
    pending = [msgspec.inspect.type_info(kind)]
    while pending:
        info = pending.pop()
        if info in seen:
            continue
        seen.append(info)
        if isinstance(info, msgspec.inspect.StructType):
            yield info.cls
            pending += [field.type for field in info.fields]
        elif isinstance(info, msgspec.inspect.UnionType):
            pending += info.types
        elif isinstance(info, (msgspec.inspect.VarTupleType, msgspec.inspect.ListType)):
            pending.append(info.item_type)
        elif isinstance(info, msgspec.inspect.TupleType):
            pending += info.item_types


def holds_numbers(info: msgspec.inspect.Type) -> bool:
    if isinstance(info, msgspec.inspect.UnionType):
        return any(holds_numbers(one) for one in info.types)
    if isinstance(info, msgspec.inspect.VarTupleType):
        return holds_numbers(info.item_type)
    if isinstance(info, msgspec.inspect.TupleType):
        return any(holds_numbers(one) for one in info.item_types)
    return isinstance(info, msgspec.inspect.IntType)


@pytest.mark.parametrize("kind", [NativeSide, Op, Passed, HostSide, KernelSide])
def test_every_number_is_a_line_or_known_to_be_none(kind: type) -> None:
    found = list(records(kind))
    assert kind in found
    for record in found:
        for field in msgspec.inspect.type_info(record).fields:
            known = (field.name in LINES) != (field.name in NUMBERS)
            assert known or not holds_numbers(field.type), (record, field.name)


@pytest.mark.parametrize("kind", [NativeSide, Op, Passed, HostSide, KernelSide])
def test_every_line_moves_wherever_its_record_stands(kind: type) -> None:
    """A field that is named as one of numbers is may hold records elsewhere: these are moved as any others."""
    value = filled(msgspec.inspect.type_info(kind))
    after = moved(value, {"a.cu": lambda line: line + 10})
    before_text, after_text = msgspec.json.encode(value).decode(), msgspec.json.encode(after).decode()
    assert before_text.count(":4") > 2
    assert ":4" not in after_text and after_text.count(":14") == before_text.count(":4")


def filled(info: msgspec.inspect.Type, depth: int = 0) -> object:
    """A value of a type with one of everything in it, each line the fourth of one file."""
    if isinstance(info, msgspec.inspect.StructType):
        made = {}
        for field in msgspec.inspect.type_info(info.cls).fields:
            if field.name in LINES and holds_numbers(field.type):
                made[field.name] = (4,) if not holds_one(field.type) else 4
            else:
                made[field.name] = "a.cu" if field.name == "file" else filled(field.type, depth + 1)
        return info.cls(**made)
    if isinstance(info, msgspec.inspect.UnionType):
        return filled(next((one for one in info.types if isinstance(one, msgspec.inspect.StructType)), info.types[0]),
                      depth)  # fmt: skip
    if isinstance(info, msgspec.inspect.VarTupleType):
        return (filled(info.item_type, depth + 1),) if depth < 12 else ()
    if isinstance(info, msgspec.inspect.TupleType):
        return tuple(filled(one, depth + 1) for one in info.item_types)
    plain = {msgspec.inspect.StrType: "x", msgspec.inspect.IntType: 7, msgspec.inspect.BoolType: True}
    return plain.get(type(info))


def holds_one(info: msgspec.inspect.Type) -> bool:
    """Whether a field holds one number, and not several."""
    types = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return any(isinstance(one, msgspec.inspect.IntType) for one in types)


def move(line: int) -> int | None:
    return None if line == 7 else line + 10


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Span("a.cu", 3, 5), Span("a.cu", 13, 15)),
        (Span("b.cu", 3, 5), Span("b.cu", 3, 5)),
        (Span("a.cu", 3, 7), None),
        (Span("a.cu", 1, 1), None),
        (Span("a.cu", 0, 0), Span("a.cu", 0, 0)),
        (Gap("include", None, "see a.cu:4, b.cu:4"), Gap("include", None, "see a.cu:14, b.cu:4")),
        (PathStep("f (:4) x ? y :4", "a.cu", 4), PathStep("f (:14) x ? y :4", "a.cu", 14)),
        (PathStep("f at :4", "a.cu", 4), None),
        (PathStep("ns::f", "a.cu", 4), PathStep("ns::f", "a.cu", 14)),
        (
            (Host("f", "a.cu", 3, 5), Terminal("torch", "x (checked at :4)", "b.cu", 4)),
            (Host("f", "a.cu", 13, 15), Terminal("torch", "x (checked at :4)", "b.cu", 4)),
        ),
        (TextFact("x", 3), TextFact("x", 3)),
    ],
)  # fmt: skip
def test_lines_of_the_file_that_they_stand_in(before, after) -> None:
    assert moved(before, {"a.cu": move}) == after


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kit", ["classickit", "pagekit"])
def test_what_is_moved_is_what_is_read_anew(tmp_path: Path, kit: str, seed: int) -> None:
    """Lines come and go in every file at once; whatever is not given up is as a fresh start has it."""
    chance = random.Random(seed)
    shutil.copytree(KITS / kit, tmp_path / "before" / kit)
    shutil.copytree(KITS / kit, tmp_path / "after" / kit)
    moves = {}
    for path in sorted((tmp_path / "after" / kit).rglob("*")):
        if path.suffix in (".cu", ".cuh", ".h", ".cpp"):
            text = path.read_text()
            old = new = read_lines(text)
            for _ in range(12):
                lines = text.split("\n")
                at = chance.randrange(min(len(lines), chance.choice((4, 1000))))
                lines.insert(at, chance.choice(("", "  ", "// x: [n, m]")))
                if read_lines("\n".join(lines)).digest == old.digest:
                    text = "\n".join(lines)
                    new = read_lines(text)
            path.write_text(text, encoding="utf-8")
            name = path.relative_to(tmp_path / "after" / kit).as_posix()
            moves[name] = lambda line, o=old, n=new: n.line(o.number(line)) if o.number(line) is not None else None
    before, after = answers(tmp_path / "before" / kit, tmp_path), answers(tmp_path / "after" / kit, tmp_path)
    assert before.keys() == after.keys()
    found = {name: moved(answer, moves) for name, answer in before.items()}
    said = {name: answer for name, answer in found.items() if answer is not None}
    assert said == {name: after[name] for name in said}
    assert len(said) > 0.8 * len(before)
    assert said != {name: before[name] for name in said}


def answers(root: Path, cache: Path) -> dict[str, tuple]:
    with closing(Session(Options(source=str(root), cache=cache / "cache", jobs=1))) as session:
        view = WalkView(session.workbench, session.source)
        return {op.name: (op, view.native(op)) for op in session.ops().ops}
