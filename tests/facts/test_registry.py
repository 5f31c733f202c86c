"""The registry of extractors: what it names is there, and the producer digest follows the code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from msgspec.structs import fields, replace

from opwalker.facts import registry
from opwalker.facts.registry import REGISTRY, Extractor, producer, producers
from opwalker.facts.workers_job import load
from opwalker.model.source import LANGUAGES, Problem


@pytest.mark.parametrize("extractor", REGISTRY.all().values(), ids=lambda extractor: extractor.kind)
def test_the_facts_of_every_extractor_can_hold_a_problem_alone(extractor: Extractor) -> None:
    facts = load(extractor.facts)
    assert not any(field.required for field in fields(facts))
    assert facts(problems=(Problem("timeout", "x"),)).problems == (Problem("timeout", "x"),)


def test_languages_and_kinds_are_well_formed() -> None:
    assert set(REGISTRY.extractors) <= set(LANGUAGES)
    kinds = [extractor.kind for row in set(REGISTRY.extractors.values()) for extractor in row]
    kinds += [round_.extractor.kind for round_ in REGISTRY.rounds]
    assert len(kinds) == len(set(kinds))
    for round_ in REGISTRY.rounds:
        assert round_.first in [extractor.kind for extractor in REGISTRY.extractors[round_.language]]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A copy of the package whose code may be changed."""
    shutil.copytree(registry._PACKAGE, tmp_path / "opwalker", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(registry, "_PACKAGE", tmp_path / "opwalker")
    forget()
    yield tmp_path / "opwalker"
    forget()


def forget() -> None:
    producer.cache_clear()
    registry._contents.cache_clear()


def test_a_producer_changes_with_its_code_and_with_no_other(package: Path) -> None:
    before = producers(REGISTRY)
    for changed, kinds in (
        ("model/cpp.py", {"cpp"}),
        ("facts/cpp_scan.py", {"cpp"}),
        ("facts/python_light.py", {"py-light", "py-full"}),
        ("source/read.py", {"cpp", "py-light", "py-full"}),
        ("link/store.py", set()),
    ):
        text = (package / changed).read_text()
        (package / changed).write_text(text + "\n# changed\n")
        forget()
        after = producers(REGISTRY)
        assert {kind for kind in after if after[kind] != before[kind]} == kinds
        (package / changed).write_text(text)


def test_a_new_file_of_the_code_counts(package: Path) -> None:
    before = producers(REGISTRY)
    (package / "facts" / "cpp_zzz.py").write_text("")
    forget()
    assert {kind for kind, digest in producers(REGISTRY).items() if digest != before[kind]} == {"cpp"}


def test_a_grammar_may_be_a_source() -> None:
    grammars = [path.name for path in registry.resources.folder("grammars").iterdir() if path.is_file()]
    one = Extractor("x", "m:f", "m:F", (f"grammars/{grammars[0]}",))
    assert producer(one) != producer(replace(one, sources=("errors.py",)))


def test_a_pattern_without_a_file_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"facts/nothing_like_it\.py"):
        producer(Extractor("x", "m:f", "m:F", ("facts/nothing_like_it.py",)))


def test_no_file_is_read_for_two_digests_of_one_pattern(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes the digests quick: a pattern that several extractors share is read once, and all of it only once."""
    patterns = {pattern for one in REGISTRY.all().values() for pattern in (*registry._COMMON, *one.sources)}
    expected = sorted(path for pattern in patterns for path in package.glob(pattern))
    read: list[Path] = []
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or real(path))
    producers(REGISTRY)
    producers(REGISTRY)
    assert sorted(read) == expected
