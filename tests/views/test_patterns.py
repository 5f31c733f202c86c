"""Every page of the catalogue does what it says: each marked line is found and no other; pages of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from opwalker import pipeline
from opwalker.errors import InputError, UsageError
from opwalker.model.patterns import PatternExample, PatternHit, PatternQuestion
from opwalker.views.pattern_pages import chosen_pages, listed, load_pages

PAGES = {pattern.id: (pattern, text) for pattern, text in load_pages(None)}

ALL = PatternQuestion()

OWN = """---
id: yield-loop
title: Loop that yields
tags: host
---

## What it is

A loop that waits.

## What problem it solves

It waits without a lock.

## What to look at next

Whether it ends.

## Query

```query
find call name ~ /(?P<call>yield)$/ and within ~ /while/
in function name ~ /wait/
```

## Matches

```cpp
void wait(bool& done) {
  while (!done) std::this_thread::yield();  // hit
}
```

## Does not match

```cpp
void once() { std::this_thread::yield(); }  // ok
```
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def hits(folder: Path, cache: Path, files: dict[str, str], pages, question=ALL) -> tuple[PatternHit, ...]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    options = pipeline.Options(source=str(folder), cache=cache, jobs=1)
    return pipeline.patterns(options, pages, question).hits


def places(examples: tuple[PatternExample, ...]) -> set[tuple[str, int]]:
    return {(one.name, line) for one in examples for line in one.marked}


@pytest.mark.parametrize("name", PAGES)
def test_what_matches(name: str, tmp_path: Path, cache: Path) -> None:
    pattern = PAGES[name][0]
    files = {one.name: one.text for one in pattern.matches}
    found = hits(tmp_path, cache, files, [PAGES[name]])
    assert {(one.file, one.line) for one in found} == places(pattern.matches)


@pytest.mark.parametrize("name", PAGES)
def test_what_does_not_match(name: str, tmp_path: Path, cache: Path) -> None:
    pattern = PAGES[name][0]
    files = {one.name: one.text for one in pattern.misses}
    assert places(pattern.misses)
    assert not hits(tmp_path, cache, files, [PAGES[name]])


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_pages_that_there_are(name: str) -> None:
    assert set(PAGES[name][0].next) <= set(PAGES) - {name}


SOURCE = """#include "kit.h"
#define LAUNCH(W) rows_kernel<W><<<1, 32>>>(x.data_ptr<float>())
template <int W> __global__ void rows_kernel(float* x) {
  if constexpr (W > 1) x[0] = 1;
}
void rows(at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.get_device());
  LAUNCH(4);
}
void other(at::Tensor& x) {
  const c10::cuda::CUDAGuard guard(x.get_device());
}
TORCH_LIBRARY(kit, m) {
  m.def("rows(Tensor! x) -> ()");
  m.impl("rows", torch::kCUDA, &rows);
  m.def("other(Tensor! x) -> ()");
  m.impl("other", torch::kCUDA, &other);
}
"""


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (PatternQuestion(ids=("raii-guard",)), [("raii-guard", 7), ("raii-guard", 11)]),
        (PatternQuestion(ids=("raii-guard",), op="rows"), [("raii-guard", 7)]),
        (PatternQuestion(op="kit::rows"), [("if-constexpr-kernel", 4), ("launch-macro", 2), ("raii-guard", 7)]),
        (PatternQuestion(tags=("launch",)), [("launch-macro", 2)]),
        (PatternQuestion(text="W > 1"), [("if-constexpr-kernel", 4)]),
        (PatternQuestion(paths=("kit.h",)), []),
        (PatternQuestion(ids=("raii-guard",), paths=("a.cu",), op="other"), [("raii-guard", 11)]),
    ],
)
def test_a_search_is_narrowed(question, expected, tmp_path: Path, cache: Path) -> None:
    found = hits(tmp_path, cache, {"a.cu": SOURCE, "kit.h": "#pragma once\n"}, list(PAGES.values()), question)
    assert [(one.id, one.line) for one in found] == expected


def test_a_hit_has_captures_and_ops(tmp_path: Path, cache: Path) -> None:
    question = PatternQuestion(ids=("launch-macro", "if-constexpr-kernel"))
    branch, macro = hits(tmp_path, cache, {"a.cu": SOURCE, "kit.h": "#pragma once\n"}, list(PAGES.values()), question)
    assert (branch.captures, branch.ops) == ({"condition": "W > 1"}, ("kit::rows",))
    assert (macro.captures, macro.ops, macro.end_line) == ({"configuration": "1, 32"}, ("kit::rows",), 2)


def test_a_walk_names_the_patterns_that_it_passes(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "a.cu").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "kit.h").write_text("#pragma once\n", encoding="utf-8")
    found = pipeline.walk(pipeline.Options(source=str(tmp_path), cache=cache, jobs=1), "rows").patterns
    assert [(ref.id, ref.line) for ref in found] == [("if-constexpr-kernel", 4), ("launch-macro", 2), ("raii-guard", 7)]


def test_own_pages_do_the_same(tmp_path: Path, cache: Path) -> None:
    own, source = tmp_path / "own", tmp_path / "source"
    own.mkdir()
    source.mkdir()
    (own / "yield-loop.md").write_text(OWN, encoding="utf-8")
    pages = load_pages(own)
    pattern = pages[0][0]
    files = {"a.cpp": pattern.matches[0].text, "b.cpp": pattern.misses[0].text}
    (found,) = hits(source, cache, files, pages)
    assert (found.file, found.line, found.captures) == ("a.cpp", 2, {"call": "yield"})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("  // hit", "", "yield-loop.md:27: 'Matches' has no example with a line marked 'hit'"),
        ("  // ok", "", "yield-loop.md:35: 'Does not match' has no example with a line marked 'ok'"),
        ("find call", "find cell", "yield-loop.md:22: 'find' is followed by one of statement, call, "),
        ("name ~ /wait/", "name ~ /wait(/", "yield-loop.md:23: /wait(/ is no regular expression"),
        ("name ~ /wait/", "colour ~ /wait/", "yield-loop.md:23: a function has no field 'colour'; it has name, "),
        ("id: yield-loop", "id: other", "yield-loop.md:1: the page calls itself 'other'"),
        ("## Query", "## Ask", "yield-loop.md:1: the section 'Query' is missing"),
        ("tags: host\n", "", "yield-loop.md:1: the front block has no tags"),
        (OWN, "", "yield-loop.md:1: the page does not begin with a front block"),
    ],
)
def test_a_bad_page_is_one_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in OWN
    (tmp_path / "yield-loop.md").write_text(OWN.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_pages(tmp_path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no pattern page"):
        load_pages(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        load_pages(tmp_path / "none")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (PatternQuestion(ids=("raii-gard",)), "no pattern is called 'raii-gard'; nearest: raii-guard"),
        (PatternQuestion(tags=("cooking",)), "no pattern has the tag 'cooking'; tags: "),
    ],
)
def test_an_unknown_id_or_tag_is_said(question: PatternQuestion, said: str) -> None:
    with pytest.raises(UsageError) as error:
        chosen_pages(list(PAGES.values()), question)
    assert said in str(error.value)


def test_a_list_looks_into_the_pages() -> None:
    found = listed(list(PAGES.values()), PatternQuestion(text="pygilstate_ensure"))
    assert [one.id for one in found] == ["gil-state-pair"]
