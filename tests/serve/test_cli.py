"""The command line: what each command hands on, what it prints, and how every kind of error is said."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from opwalker import __version__
from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.build import BUILDS
from opwalker.serve.cli import KINDS, STAGES

COMMANDS = (
    "ops",
    "walk",
    "kernels",
    "index",
    "dump",
    "audit",
    "check",
    "diff",
    "notes",
    "patterns",
    "site",
    "verify",
)


def test_walk_hands_over_name_and_options(run, flow) -> None:
    code, out, err = run("walk", "scatter_rows", "--source", "rowkit==1.4.0")
    function, options, arguments = flow.calls[0]
    assert (code, function) == (0, "walk")
    assert arguments == {"name": "scatter_rows"}
    assert options.source == "rowkit==1.4.0"
    assert (options.build, options.defines, options.archs, options.jobs, options.cache) == ("cuda", (), (), None, None)
    assert out.startswith("rowkit::scatter_rows")
    assert err == "opwalker: note: the store is new\n"


def test_a_second_opinion_is_asked_for_by_name(run, flow) -> None:
    code, out, _ = run("walk", "scatter_rows", "--clang")
    assert (code, flow.calls[0][2]) == (0, {"name": "scatter_rows", "clang": True})
    assert "Second opinion  clang version 18.1.1, CUDA 13.0" in out
    assert json.loads(run("walk", "scatter_rows", "--clang", "--json")[1])["clang"]["contradicted"] == 1
    assert json.loads(run("walk", "scatter_rows", "--json")[1])["clang"] is None


def test_shared_options_reach_the_pipeline_from_any_place(run, flow) -> None:
    words = ["walk", "--build", "rocm", "--define", "A", "-D", "B=x=1", "--arch", "9.0a,sm_100f", "scatter_rows"]
    words += ["--arch", "gfx942", "-j", "3", "--cache", "here", "--instances", "-s", "lib"]
    assert run(*words)[0] == 0
    _, options, arguments = flow.calls[0]
    assert options.source == "lib"
    assert options.build == "rocm"
    assert options.defines == (("A", None), ("B", "x=1"))
    assert options.archs == ("9.0a", "10.0f", "gfx942")
    assert options.jobs == 3
    assert options.cache == Path("here")
    assert arguments == {"name": "scatter_rows"}


@pytest.mark.parametrize("build", BUILDS)
def test_every_kind_of_build_can_be_chosen(run, flow, build: str) -> None:
    assert run("kernels", "--build", build)[0] == 0
    assert flow.calls[0][1].build == build


@pytest.mark.parametrize("kind", KINDS)
def test_ops_are_narrowed_and_an_empty_list_says_by_what(run, flow, kind: str) -> None:
    code, out, _ = run("ops", "--kind", kind, "--namespace", "rowkit")
    assert code == 0
    assert flow.calls[0][2] == {"kind": kind, "namespace": "rowkit"}
    assert f"no op of kind {kind} in namespace rowkit is registered" in out
    assert "210 files read" in out


@pytest.mark.parametrize("stage", STAGES)
def test_dump_prints_json_whether_asked_or_not(run, flow, stage: str) -> None:
    path = "csrc/x.cu" if stage == "facts" else None
    words = ["dump", stage] + ([path] if path else [])
    code, out, _ = run(*words)
    assert code == 0
    assert json.loads(out) == {"stage": stage, "path": path}
    assert run(*words, "--json")[1] == out


def test_kernels_of_an_op(run, flow) -> None:
    assert run("kernels", "scatter_rows", "--instances")[0] == 0
    assert flow.calls[0][2] == {"op": "scatter_rows"}


@pytest.mark.parametrize("words", [("kernels",), ("walk", "scatter_rows")])
def test_instances_are_listed_when_asked_for(run, words: tuple[str, ...]) -> None:
    assert "<c10::Half" not in run(*words)[1]
    assert "<c10::Half" in run(*words, "--instances")[1]


def test_index_prints_counts(run) -> None:
    code, out, _ = run("index")
    assert code == 0
    assert "1,244  cpp 12 · cuda 29 · python 1,203" in out
    assert "4 (1 new or changed), 1,240 reused, 2 removed" in out
    assert "csrc/rows/old.cu:12" in out


@pytest.mark.parametrize(
    "words", [["walk", "scatter_rows"], ["ops"], ["kernels"], ["index"]], ids=lambda words: words[0]
)
def test_json_is_one_document_on_one_line_and_nothing_else(run, words: list[str]) -> None:
    code, out, _ = run(*words, "--json")
    assert code == 0
    assert out.endswith("\n")
    assert out.count("\n") == 1
    assert isinstance(json.loads(out), dict)


@pytest.mark.parametrize("words", [["--version"], ["-v"]])
def test_version(run, words: list[str]) -> None:
    assert run(*words) == (0, f"opwalker {__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_a_page_with_an_example(run, command: str, flag: str) -> None:
    code, out, err = run(command, flag)
    assert (code, err) == (0, "")
    assert f"  Example:\n    opwalker {command} " in out + " "
    for option in ("--source", "--json", "--no-color", "--define", "--build", "--arch", "--jobs", "--debug"):
        assert option in out


def test_the_program_has_a_page_that_names_every_command(run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(f"\n  {command} " in out for command in COMMANDS)
    assert "Example:\n    opwalker walk" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], f"no command given: {', '.join(COMMANDS)}; see 'opwalker --help'"),
        (["wlak"], "no such command 'wlak', did you mean 'walk'? see 'opwalker --help'"),
        (["walk"], "missing argument 'OP'; see 'opwalker walk --help'"),
        (["walk", "a", "b"], "got unexpected extra argument(s) (b); see 'opwalker walk --help'"),
        (
            ["walk", "a", "--jsn"],
            "no such option: --jsn (Possible options: --jobs, --json); see 'opwalker walk --help'",
        ),
        (["walk", "a", "--source"], "option '--source' requires an argument; see 'opwalker walk --help'"),
        (["walk", "a", "--build", "metal"], "--build 'metal' is not known; choose from cuda, rocm, cpu"),
        (
            ["walk", "a", "-D", "2x=1"],
            "--define 2x=1: '2x' is no macro name; write --define NAME or --define NAME=VALUE",
        ),
        (["walk", "a", "--arch", "9.0a,"], "--arch '' is no architecture; write it as 9.0a, sm_90a or gfx942"),
        (["walk", "a", "--jobs", "0"], "--jobs '0' is no number of processes; give a whole number from 1 on"),
        (["walk", "a", "--jobs", "²"], "--jobs '²' is no number of processes; give a whole number from 1 on"),
        (["ops", "--kind", "cffi"], "--kind 'cffi' is not known; choose from " + ", ".join(KINDS)),
        (["dump", "tokens"], "the stage 'tokens' is not known; choose from source, facts, index"),
        (["dump", "facts"], "dump facts needs the path of a file; write 'opwalker dump facts PATH'"),
        (["dump", "index", "a.cu"], "dump index takes no path; write 'opwalker dump index'"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_wrong_usage_is_one_line_and_exit_code_two(run, flow, words: list[str], said: str) -> None:
    assert run(*words) == (2, "", f"opwalker: error: {said}\n")
    assert flow.calls == []


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (InputError("no such op", "did you mean x?"), 3, "no such op; did you mean x?"),
        (EnvironmentMissing("no network"), 5, "no network"),
        (InputError("a message\nof two lines"), 3, "a message of two lines"),
        (MemoryError(), 5, "there is not enough memory for this; try fewer --jobs"),
        (
            OSError(errno.ENOSPC, "full"),
            5,
            "no room is left on the disk; free some, or set OPWALKER_CACHE to another folder",
        ),
    ],
    ids=["input", "environment", "two-lines", "memory", "disk"],
)
def test_an_error_is_one_line_with_its_own_exit_code(run, flow, fault: Exception, code: int, said: str) -> None:
    flow.faults["list_ops"] = fault
    assert run("ops") == (code, "", f"opwalker: error: {said}\n")


def test_a_fault_of_ours_says_what_and_where_and_how_to_report_it(run, flow) -> None:
    flow.faults["list_ops"] = KeyError("scope\nleft")
    code, out, err = run("ops")
    assert (code, out) == (70, "")
    assert err.count("\n") == 1
    assert "a fault of opwalker itself: KeyError: 'scope\\nleft' (in ask, opwalker/serve/session.py:" in err
    assert "please report it" in err
    assert "--debug" in err


def test_debug_adds_the_traceback_and_keeps_the_line(run, flow) -> None:
    flow.faults["list_ops"] = InputError("no such op")
    code, _, err = run("ops", "--debug")
    assert code == 3
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("opwalker: error: no such op\n")


def test_an_interrupt_is_quiet(run, flow) -> None:
    flow.faults["list_ops"] = KeyboardInterrupt()
    assert run("ops") == (130, "", "")
