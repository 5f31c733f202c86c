"""The doors of ``patterns``: what the words mean, what is shown, and what is refused."""

from __future__ import annotations

import json

from opwalker.model.patterns import PatternHit, PatternQuestion, PatternSearch
from opwalker.model.walk import SourceInfo

HIT = PatternHit(
    "raii-guard", "RAII guard", "csrc/a.cu", 7, 8, "CUDAGuard guard(x)", {"guard": "CUDAGuard"},
    tuple(f"kit::op{n}" for n in range(6)),
)  # fmt: skip


def _answer(flow, hits=(HIT,)) -> list[PatternQuestion]:
    asked: list[PatternQuestion] = []

    def patterns(options, pages, question, *, progress=None, say=None):
        asked.append(question)
        return PatternSearch(source=SourceInfo("kit", "1.0", None), hits=hits, searched=question.ids)

    flow.patterns = patterns
    return asked


def test_a_search_tells_ids_from_paths(run, flow) -> None:
    asked = _answer(flow)
    code, out, _ = run("patterns", "search", "raii-guard", "csrc/x", "--op", "rows", "--tag", "host", "--text", "a")
    assert code == 0
    assert asked == [PatternQuestion(("raii-guard",), ("host",), "a", "rows", ("csrc/x",))]
    assert "kit 1.0  1 hit of 1 pattern" in out
    assert "csrc/a.cu:7-8" in out
    assert "guard=CUDAGuard  kit::op0, kit::op1, kit::op2, kit::op3 and 2 more\n" in out


def test_an_empty_search_says_what_was_looked_for(run, flow) -> None:
    _answer(flow, ())
    code, out, _ = run("patterns", "search", "raii-guard")
    assert (code, "nothing found; looked for raii-guard" in out) == (0, True)


def test_json_has_the_fields_of_the_contract(run, flow) -> None:
    _answer(flow)
    document = json.loads(run("patterns", "search", "--json")[1])
    assert document["format"] == 1
    assert set(document["hits"][0]) == {"id", "title", "file", "line", "end_line", "text", "captures", "ops"}


def test_list_and_show_need_no_source(run, flow) -> None:
    code, out, _ = run("patterns")
    assert code == 0 and "\n  dispatch-macro " in out
    code, out, _ = run("patterns", "show", "gil-state-pair")
    assert code == 0 and "find call name ~ /^PyGILState_Ensure$/" in out
    assert flow.calls == []


def test_what_is_refused(run, tmp_path) -> None:
    assert run("patterns", "find")[0] == 2
    code, _, err = run("patterns", "show", "gil-pair")
    assert (code, "no pattern is called 'gil-pair'; nearest: gil-state-pair" in err) == (2, True)
    (tmp_path / "own.md").write_text("# nothing\n", encoding="utf-8")
    code, _, err = run("patterns", "list", "--patterns", str(tmp_path))
    assert (code, err.count("\n"), "own.md:1: " in err) == (3, 1, True)
