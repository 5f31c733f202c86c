"""The check as it is asked for: forms of the answer, excuses, baseline, settings, what changed since a revision."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from opwalker.serve.cli import main
from tests.not_run import NotRun

ROOT = Path(__file__).resolve().parents[2]
CODE = """#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x, cudaStream_t stream) {
  const c10::cuda::CUDAGuard guard(x.device());
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  cudaStreamSynchronize(stream);
}
"""
#: The parts of SARIF 2.1.0 that the program writes, as the standard words them.
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "help", "defaultConfiguration"],
                                            "properties": {
                                                "help": {"type": "object", "required": ["text", "markdown"]},
                                                "defaultConfiguration": {
                                                    "properties": {
                                                        "level": {"enum": ["error", "warning", "note", "none"]}
                                                    }
                                                },
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                },
            },
        },
    },
    "$defs": {
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "id": {"type": "integer", "minimum": 0},
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {"required": ["uri"], "properties": {"uri": {"type": "string"}}},
                        "region": {
                            "properties": {
                                key: {"type": "integer", "minimum": 1}
                                for key in ("startLine", "endLine", "startColumn")
                            },
                            "required": ["startLine"],
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
            "properties": {
                "level": {"enum": ["error", "warning", "note", "none"]},
                "message": {"required": ["text"]},
                "locations": {"minItems": 1, "maxItems": 1, "items": {"$ref": "#/$defs/location"}},
                "relatedLocations": {"items": {"$ref": "#/$defs/location"}},
                "partialFingerprints": {"additionalProperties": {"type": "string"}},
            },
        },
    },
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    (folder / "csrc").mkdir(parents=True)
    (folder / "csrc" / "twice.cu").write_text(CODE)
    return folder


@pytest.fixture
def ask(tmp_path: Path, source: Path, capfd: pytest.CaptureFixture[str]):
    def run(*words: str) -> tuple[int, str]:
        where = () if "--source" in words else ("--source", str(source))
        code = main(["check", *words, *where, "--cache", str(tmp_path / "cache"), "--jobs", "1"])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out + captured.err

    return run


def _rules(document: dict[str, Any]) -> list[str]:
    return [one["rule"] for one in document["findings"]]


def test_findings_as_text_show_the_code(ask) -> None:
    code, out = ask()
    assert code == 1
    assert "csrc/twice.cu:5:3 warning missing-launch-check" in out
    assert "> 5 |   twice_kernel<<<1, 32, 0, stream>>>" in out
    assert re.search(r"^2 findings of \d+ rules: ", out, re.MULTILINE)


def test_findings_as_json(ask) -> None:
    code, out = ask("--json")
    document = json.loads(out)
    assert code == 1
    assert _rules(document) == ["missing-launch-check", "cuda-error-dropped"]
    assert document["counts"] == {"cuda-error-dropped": 1, "missing-launch-check": 1}
    first = document["findings"][0]
    assert (first["file"], first["line"], first["end_line"], first["column"]) == ("csrc/twice.cu", 5, 5, 3)
    assert ask("--format", "json")[1] == out


def test_findings_as_sarif(ask) -> None:
    code, out = ask("--format", "sarif")
    document = json.loads(out)
    jsonschema.validate(document, SARIF)
    run = document["runs"][0]
    assert code == 1
    assert [one["ruleId"] for one in run["results"]] == ["missing-launch-check", "cuda-error-dropped"]
    for one in run["results"]:
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
    assert run["properties"] == {"findings": 2, "leftOut": 0}


def test_sarif_holds_so_many_and_counts_the_rest() -> None:
    from opwalker.model.check import CheckResult, Finding
    from opwalker.model.walk import SourceInfo
    from opwalker.serve.render.sarif import MOST, to_sarif

    many = tuple(Finding("r", "info", "m", "a.cu", n + 1, n + 1, 1, None, (), str(n)) for n in range(MOST + 3))
    run = json.loads(to_sarif(CheckResult(source=SourceInfo("kit"), findings=many, counts={})))["runs"][0]
    assert len(run["results"]) == MOST
    assert run["properties"] == {"findings": MOST + 3, "leftOut": 3}


def test_findings_as_annotations(ask) -> None:
    _, out = ask("--format", "github")
    assert out.splitlines()[0].startswith(
        "::warning file=csrc/twice.cu,line=5,endLine=5,col=3,title=missing-launch-check::"
    )


def test_paths_narrow_what_is_told(ask, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source / "python").mkdir()
    assert ask("python")[0] == 0
    monkeypatch.chdir(source / "csrc")
    for named in ("csrc", "csrc/twice.cu", "./csrc//twice.cu", "python/../csrc", ".", "twice.cu", "../csrc/twice.cu"):
        assert ask(named)[0] == 1, named
    assert ask(str(source / "csrc"))[0] == 1


@pytest.mark.parametrize("named", ["csrc/twce.cu", "csrc/twice", "../kit2", "/"])
def test_a_path_that_names_nothing_is_no_clean_bill(ask, named: str) -> None:
    code, said = ask("csrc", named)
    assert (code, said.count("\n")) == (3, 1)
    assert f"{named!r} names no file or folder of this source" in said


def test_rules_are_chosen(ask) -> None:
    assert _rules(json.loads(ask("--json", "--select", "missing-launch-check")[1])) == ["missing-launch-check"]
    assert _rules(json.loads(ask("--json", "--ignore", "missing-launch-check")[1])) == ["cuda-error-dropped"]
    code, out = ask("--select", "missing-lanch-check")
    assert (code, out) == (
        2,
        "opwalker: error: no rule is called 'missing-lanch-check'; nearest: missing-launch-check, missing-fake\n",
    )


def test_an_excuse_needs_a_reason_and_a_use(ask, source: Path) -> None:
    path = source / "csrc" / "twice.cu"
    excused = CODE.replace("float>());", "float>());  // opwalker: ignore[missing-launch-check] checked by the caller")
    path.write_text(excused)
    assert _rules(json.loads(ask("--json")[1])) == ["cuda-error-dropped"]
    path.write_text(CODE.replace("float>());", "float>());  // opwalker: ignore[missing-launch-check]"))
    assert _rules(json.loads(ask("--json")[1])) == ["missing-launch-check", "unused-ignore", "cuda-error-dropped"]
    path.write_text(CODE + "// opwalker: ignore[stream-default] none here\nint x;\n")
    document = json.loads(ask("--json")[1])
    assert [(one["rule"], one["line"]) for one in document["findings"]][-1] == ("unused-ignore", 8)
    path.write_text(
        CODE.replace("  cudaStreamS", "  // opwalker: ignore[cuda-error-dropped] at the end\n  cudaStreamS")
    )
    assert _rules(json.loads(ask("--json")[1])) == ["missing-launch-check"]


def test_a_baseline_holds_back_what_was_there_though_lines_move(ask, source: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    assert ask("--write-baseline", str(baseline))[0] == 1
    path = source / "csrc" / "twice.cu"
    path.write_text("// one more line\n" + CODE)
    code, out = ask("--baseline", str(baseline), "--json")
    assert (code, json.loads(out)["hidden"]) == (0, {"the baseline": 2})
    path.write_text(CODE.replace("}\n", "}\n") + CODE[CODE.index("void twice") :].replace("void twice", "void thrice"))
    assert len(json.loads(ask("--baseline", str(baseline), "--json")[1])["findings"]) == 2
    assert ask("--baseline", str(tmp_path / "none.json"))[0] == 3
    baseline.write_text("{}")
    assert ask("--baseline", str(baseline))[0] == 3


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('ignore = ["missing-launch-check"]', ["cuda-error-dropped"]),
        ('exclude = ["csrc"]', []),
        ('[per-path]\n"csrc/*.cu" = ["cuda-error-dropped"]', ["missing-launch-check"]),
        ('launch-checks = ["cudaStreamSynchronize"]', ["cuda-error-dropped"]),
        ('select = ["stream-default"]', []),
    ],
)
def test_a_project_has_settings(ask, source: Path, settings: str, expected: list[str]) -> None:
    (source / "opwalker.toml").write_text(settings + "\n")
    assert _rules(json.loads(ask("--json")[1])) == expected
    (source / "opwalker.toml").unlink()
    table = (
        settings.replace("[per-path]", "[tool.opwalker.per-path]")
        if "[per" in settings
        else f"[tool.opwalker]\n{settings}"
    )
    (source / "pyproject.toml").write_text(table + "\n")
    assert _rules(json.loads(ask("--json")[1])) == expected


def test_code_of_other_projects_is_checked_when_it_is_asked_for(ask, source: Path) -> None:
    copied = source / "third_party"
    (source / "csrc").rename(copied)
    answer = json.loads(ask("--json")[1])
    assert answer["findings"] == []
    assert [note.partition("(")[2].partition(")")[0] for note in answer["notes"]] == ["1 file in third_party"]
    asked = json.loads(ask("third_party", "--json")[1])
    assert (sorted(_rules(asked)), asked["notes"]) == (["cuda-error-dropped", "missing-launch-check"], [])
    (source / "opwalker.toml").write_text('own = ["third_party"]\n')
    assert sorted(_rules(json.loads(ask("--json")[1]))) == ["cuda-error-dropped", "missing-launch-check"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("ignored = []", "no setting is called 'ignored'"),
        ('ignore = "all"', "ignore is no list of texts"),
        ('ignore = ["nothing"]', "no rule is called 'nothing'"),
        ('torch = "new"', "torch says no least version"),
        ("ignore = [", "opwalker.toml: "),
    ],
)
def test_wrong_settings_are_said(ask, source: Path, settings: str, said: str) -> None:
    (source / "opwalker.toml").write_text(settings + "\n")
    code, out = ask()
    assert code == 3
    assert said in out and out.count("\n") == 1


def git_in(folder: Path) -> Callable[..., None]:
    """Git in a folder, whoever runs it; NotRun without one."""
    if shutil.which("git") is None:
        raise NotRun("git is not installed")
    who = {f"GIT_{role}_{what}": "a@b.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(folder), *words], env=os.environ | who, check=True, capture_output=True)

    return git


def test_lines_of_python_are_counted_as_it_counts_them(ask, source: Path) -> None:
    git = git_in(source)
    (source / "csrc" / "bind.cpp").write_text(
        'TORCH_LIBRARY(kit, m) { m.def("f(Tensor x, int n) -> Tensor"); m.impl("f", torch::kCUDA, &f); }\n'
    )
    fake = 'import torch\n# a\rb = 1\n@torch.library.register_fake("kit::f")\ndef f_fake(x):\n    return x\n'
    path = source / "fake.py"
    path.write_bytes(fake.encode())
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    path.write_bytes(fake.replace("(x)", "( x)").encode())
    words = ("--json", "--select", "fake-signature-mismatch")
    found = json.loads(ask("--changed-since", "HEAD", *words)[1])["findings"]
    assert [(one["file"], one["line"]) for one in found] == [("fake.py", 5)]
    assert found == json.loads(ask(*words)[1])["findings"]
    path.write_bytes(fake.replace("b = 1", "b = 2").encode())
    assert json.loads(ask("--changed-since", "HEAD", *words)[1])["findings"] == []


def test_only_what_changed_is_told(ask, source: Path) -> None:
    git = git_in(source)
    assert ask("--changed-since", "HEAD")[0] == 3
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert ask("--changed-since", "HEAD")[0] == 0
    path = source / "csrc" / "twice.cu"
    path.write_text(CODE.replace("twice_kernel<<<1, 32", "twice_kernel<<<2, 32"))
    assert _rules(json.loads(ask("--changed-since", "HEAD", "--json")[1])) == ["missing-launch-check"]
    (source / "csrc" / "new.cu").write_text(CODE.replace("twice", "thrice"))
    assert len(json.loads(ask("--changed-since", "HEAD", "--json")[1])["findings"]) == 3
    for wrong in ("no-such-revision", "--output=x", "", "HEAD...HEAD"):
        code, out = ask("--changed-since", wrong)
        assert code == 3
        assert out.count("\n") == 1
    # A folder below the top of the checkout is a source of its own; what is another repository is named.
    (source / "csrc" / "inner").mkdir()
    git("init", "-q", "csrc/inner")
    (source / "csrc" / "inner" / "third.cu").write_text(CODE.replace("twice", "third"))
    found = json.loads(ask("--changed-since", "HEAD", "--json", "--source", str(source / "csrc"))[1])
    assert {one["file"] for one in found["findings"]} == {"twice.cu", "new.cu"}
    assert len(found["findings"]) == 3
    assert found["notes"] == ["inner: a repository within this one; what changed there was not looked into"]


def test_rules_are_listed_and_shown(ask) -> None:
    code, out = ask("--rules")
    assert code == 0
    assert re.search(r"^missing-launch-check +warning +on +A kernel launch", out, re.MULTILINE)
    assert "*Use instead.*" in ask("--rules", "--select", "missing-launch-check")[1]


def test_the_action_and_the_hook_are_whole() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    assert all("shell" in step or "uses" in step for step in action["runs"]["steps"])
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"].startswith("opwalker check") and hook["language"] == "python"
