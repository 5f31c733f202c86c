"""Bad input through the program itself: one line that says what is wrong and what to do, and the right exit code.

A fault of one file never costs the rest: every tree here holds a sound op, and it is still listed and walked.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Answer, Ask
from tests.source.archives import special, tar_of, zip_of
from tests.source.loopback import Index, serving

SOUND = """\
#include <torch/library.h>
at::Tensor sound(const at::Tensor& x) { return at::clone(x); }
TORCH_LIBRARY(kept, m) {
  m.def("sound(Tensor x) -> Tensor");
  m.impl("sound", torch::kCUDA, &sound);
}
"""
LEVELS = 10_000
#: Seconds after which something hangs, on however slow a machine.
WHATEVER_IT_TAKES = 600

Program = Callable[..., Answer]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program as a process of its own. ``environment`` is added to the present one."""

    def run(*words: str | Path, environment: dict[str, str] | None = None, **options: object) -> Answer:
        done = subprocess.run(
            [sys.executable, "-m", "opwalker", *map(str, words)],
            check=False,
            capture_output=True,
            text=True,
            timeout=WHATEVER_IT_TAKES,
            env={**os.environ, "OPWALKER_CACHE": str(tmp_path / "cache"), **(environment or {})},
            **options,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with one sound op."""
    root = tmp_path / "tree"
    root.mkdir()
    (root / "sound.cpp").write_text(SOUND, encoding="utf-8")
    return root


def refused(answer: Answer, code: int, *said: str) -> None:
    """The command failed with one line on stderr that holds every piece of ``said``, and printed nothing else."""
    assert (answer.code, answer.out) == (code, ""), answer
    assert answer.err.startswith("opwalker: error: ")
    assert answer.err.count("\n") == 1, answer.err
    assert [piece for piece in said if piece not in answer.err] == [], answer.err


def ops_of(answer: Answer) -> list[str]:
    return [op["name"] for op in answer.document["ops"]]


def problems_of(answer: Answer) -> list[str]:
    return [f"{problem['file']} {problem['kind']}" for problem in answer.document["problems"]]


# -- names ------------------------------------------------------------------------------------------------------------


def test_an_unknown_op_is_answered_with_the_nearest(ask: Ask, tree: Path) -> None:
    refused(ask("walk", "kept::sount", "--source", tree), 3, "`kept::sount`", "nearest: kept::sound")
    refused(ask("walk", "sount", "--source", tree), 3, "nearest: kept::sound")
    refused(ask("kernels", "torch.ops.kept.sond", "--source", tree), 3, "nearest: kept::sound")


def test_an_unknown_op_that_is_like_none(ask: Ask, tree: Path) -> None:
    refused(ask("walk", "zzzzzzzz", "--source", tree), 3, "no registration of `zzzzzzzz`", "`opwalker ops` lists")


def test_a_place_that_is_not_there(ask: Ask, tree: Path) -> None:
    refused(ask("walk", "csrc/nope.cu::f", "--source", tree), 3, "no file `csrc/nope.cu` in this source")
    name = next(tree.glob("*.cpp")).name
    refused(ask("walk", f"{name}::zzzz", "--source", tree), 3, f"`zzzz` is defined in {name}")


def test_an_ambiguous_op_is_answered_with_the_candidates(ask: Ask, tree: Path) -> None:
    (tree / "twin.cpp").write_text(SOUND.replace("(kept,", "(twin,"), encoding="utf-8")
    refused(ask("walk", "sound", "--source", tree), 3, "sound", "kept::sound", "twin::sound")
    assert ask("walk", "twin::sound", "--source", tree, "--json").document["op"]["name"] == "twin::sound"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("walk",), "missing argument 'OP'"),
        (("walkk", "x"), "no such command 'walkk'"),
        (("ops", "--kind", "cuda"), "choose from torch_library"),
        (("ops", "--jobs", "none"), "is no number of processes"),
        (("walk", "x", "--build", "metal"), "choose from cuda"),
        (("dump", "facts"), "needs the path of a file"),
    ],
)
def test_wrong_usage(program: Program, words: tuple[str, ...], said: str) -> None:
    refused(program(*words), 2, said)


def test_facts_of_a_file_that_is_not_there(ask: Ask, tree: Path) -> None:
    refused(ask("dump", "facts", "sounds.cpp", "--source", tree), 3, "sounds.cpp", "nearest: sound.cpp")


# -- folders and files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gone", "gone.tar.gz", "gone==1=0"])
def test_a_source_that_is_not_there(program: Program, tmp_path: Path, name: str) -> None:
    forms = "give a folder, an archive, a git revision or NAME==VERSION"
    refused(program("ops", "--source", tmp_path / name), 3, name, forms)


@pytest.mark.parametrize("files", [{}, {"notes.txt": "no code"}], ids=["empty", "without sources"])
def test_a_folder_without_sources_says_so(ask: Ask, tmp_path: Path, files: dict[str, str]) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    answer = ask("ops", "--source", root)
    assert answer.code == 0
    assert "no op is registered in this source; looked for TORCH_LIBRARY" in answer.out
    assert "0 files read" in answer.out
    refused(ask("walk", "sound", "--source", root), 3, "no registration of `sound`")
    assert ask("kernels", "--source", root, "--json").document["kernels"] == []


@pytest.mark.parametrize(
    ("content", "kind", "listed"),
    [
        (bytes(range(256)) * 64, "binary", False),
        (SOUND.replace("(kept,", "(other,").replace("return", "/* für */ return").encode("latin-1"), "encoding", True),
        (SOUND.replace("(kept,", "(other,").encode("utf-16"), None, True),
        (SOUND.replace("(kept,", "(other,").replace("\n", "\r\n").encode(), None, True),
        (SOUND.replace("(kept,", "(other,").replace("return", "ret\0rn").encode() + b"\0\0", "nul-bytes", True),
        (b"", None, False),
    ],
    ids=["binary", "Latin-1", "UTF-16", "CRLF", "NUL", "empty"],
)
def test_a_file_that_is_no_plain_text(ask: Ask, tree: Path, content: bytes, kind: str | None, listed: bool) -> None:
    (tree / "other.cu").write_bytes(content)
    assert ops_of(ask("ops", "--source", tree, "--json")) == ["kept::sound", *(["other::sound"] if listed else [])]
    assert problems_of(ask("index", "--source", tree, "--json")) == ([f"other.cu {kind}"] if kind else [])
    if listed:
        walk = ask("walk", "other::sound", "--source", tree, "--json").document
        assert [place["line"] for place in walk["op"]["defs"]] == [4]
        assert walk["implementations"][0]["host"]["line"] == 2


def test_files_that_cannot_be_read(ask: Ask, tree: Path) -> None:
    os.mkfifo(tree / "pipe.cu")
    (tree / "dangling.cu").symlink_to("nowhere.cu")
    (tree / "outside.cu").symlink_to("/etc/passwd")
    (tree / "folder.cu").mkdir()
    assert ops_of(ask("ops", "--source", tree, "--json")) == ["kept::sound"]
    problems = problems_of(ask("index", "--source", tree, "--json"))
    assert {problem.split()[0] for problem in problems} == {"pipe.cu", "dangling.cu", "outside.cu"}


def test_links_that_lead_in_circles(ask: Ask, tree: Path) -> None:
    (tree / "again").symlink_to(".")
    (tree / "self.cu").symlink_to("self.cu")
    (tree / "inner").mkdir()
    (tree / "inner" / "up").symlink_to("..")
    assert ops_of(ask("ops", "--source", tree, "--json")) == ["kept::sound"]
    assert problems_of(ask("index", "--source", tree, "--json")) == ["self.cu unreadable"]


def test_a_file_of_200_mb_is_left_alone(program: Program, tree: Path) -> None:
    with open(tree / "huge.cu", "wb") as huge:
        huge.truncate(200 << 20)
    answer = program("index", "--source", tree, "--json")
    assert problems_of(answer) == ["huge.cu too-large"]
    answer = program("ops", "--source", tree, "--json")
    assert ops_of(answer) == ["kept::sound"]
    assert answer.err == "opwalker: note: huge.cu was not read: 200 MB is above the limit of 64 MB\n"


DEEP = {
    "braces.cu": f"void deep() {'{' * LEVELS}{'}' * LEVELS}\n",
    "parentheses.cu": f"int deep = {'(' * LEVELS}1{')' * LEVELS};\n",
    "brackets.cu": f"auto deep = {'[' * LEVELS}{']' * LEVELS};\n",
    "templates.cu": f"{'A<' * LEVELS}int{'>' * LEVELS} deep;\n",
    "conditions.cu": f"{'#ifdef DEEP' + chr(10):s}" * LEVELS + "int deep;\n" + "#endif\n" * LEVELS,
    "open.cu": "namespace n {" * LEVELS + "\n",
    "parentheses.py": f"deep = {'(' * LEVELS}1{')' * LEVELS}\n",
    "indented.py": "".join(f"{' ' * level}if deep:\n" for level in range(LEVELS // 10))
    + f"{' ' * (LEVELS // 10)}pass\n",
}


@pytest.mark.parametrize("name", DEEP)
def test_ten_thousand_levels(program: Program, tree: Path, name: str) -> None:
    (tree / name).write_text(DEEP[name], encoding="utf-8")
    answer = program("ops", "--source", tree, "--json")
    assert ops_of(answer) == ["kept::sound"]
    assert "Traceback" not in answer.err


def test_macros_that_nest_ten_thousand_levels(program: Program, tree: Path) -> None:
    steps = "".join(f"#define STEP_{n}(x) STEP_{n + 1}(x)\n" for n in range(LEVELS))
    (tree / "steps.cu").write_text(
        steps + "void climb() { STEP_0(1); }\n" + 'TORCH_LIBRARY(steps, m) { m.def("climb() -> ()", &climb); }\n'
    )
    walk = program("walk", "steps::climb", "--source", tree, "--json").document
    assert walk["implementations"][0]["host"]["line"] == LEVELS + 1


def test_a_macro_that_doubles_at_every_level(program: Program, tree: Path) -> None:
    steps = "".join(f"#define TWICE_{n}(x) TWICE_{n + 1}(x) TWICE_{n + 1}(x)\n" for n in range(64))
    (tree / "twice.cu").write_text(
        steps
        + "#define TWICE_64(x) x;\n"
        + "void grow() { TWICE_0(1) }\n"
        + 'TORCH_LIBRARY(steps, m) { m.def("grow() -> ()", &grow); }\n'
    )
    walk = program("walk", "steps::grow", "--source", tree, "--json").document
    assert walk["implementations"][0]["host"]["name"] == "grow"


def test_a_macro_that_calls_itself_and_files_that_include_each_other(ask: Ask, tree: Path) -> None:
    (tree / "a.h").write_text('#include "b.h"\n#define SELF(x) SELF(x) OTHER(x)\n')
    (tree / "b.h").write_text('#include "a.h"\n#define OTHER(x) SELF(x)\n')
    (tree / "loop.cu").write_text(
        '#include "a.h"\nvoid turn() { SELF(1); turn(); }\nTORCH_LIBRARY(loop, m) { m.def("turn() -> ()", &turn); }\n'
    )
    walk = ask("walk", "loop::turn", "--source", tree, "--json").document
    assert walk["implementations"][0]["host"]["line"] == 2


def test_a_file_that_changes_while_it_is_read(program: Program, tree: Path) -> None:
    changing = tree / "changing.cu"
    stop = threading.Event()

    def write() -> None:
        length = 0
        while not stop.is_set():
            length = (length + 7919) % 200_000
            changing.write_text("// " + "x" * length + "\n" + SOUND.replace("(kept,", "(other,"), encoding="utf-8")

    write_once = SOUND.replace("(kept,", "(other,")
    changing.write_text(write_once, encoding="utf-8")
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            answer = program("ops", "--source", tree, "--json")
            assert "kept::sound" in ops_of(answer)
            assert set(ops_of(answer)) <= {"kept::sound", "other::sound"}
    finally:
        stop.set()
        writer.join()
    changing.write_text(write_once, encoding="utf-8")
    assert ops_of(program("ops", "--source", tree, "--json")) == ["kept::sound", "other::sound"]


def test_a_schema_that_cannot_be_read_is_a_gap_and_its_op_is_listed(ask: Ask, tree: Path) -> None:
    (tree / "bad.cpp").write_text('TORCH_LIBRARY(bad, m) {\n  m.def("torn(Tensor x, -> Tensor");\n}\n')
    document = ask("ops", "--source", tree, "--json").document
    assert [op["name"] for op in document["ops"]] == ["bad::torn", "kept::sound"]
    assert [(gap["kind"], gap["span"]["file"], gap["span"]["line"]) for gap in document["gaps"]] == [
        ("bad-schema", "bad.cpp", 2)
    ]


# -- archives ---------------------------------------------------------------------------------------------------------

MEMBER = ("lib-1.0/sound.cpp", SOUND.encode())

HOSTILE = {
    "a path upwards": ((("../../evil.cpp", b"x"),), "climbs out of the tree"),
    "an absolute path": ((("/etc/evil.cpp", b"x"),), "absolute path"),
    "a link outwards": ((special("lib-1.0/l", tarfile.SYMTYPE, "../../../etc/passwd"),), "link"),
    "an absolute link": ((special("lib-1.0/l", tarfile.SYMTYPE, "/etc/passwd"),), "link to an absolute path"),
    "a hard link outwards": ((special("lib-1.0/l", tarfile.LNKTYPE, "../outside"),), "climbs out of the tree"),
    "a device": ((special("lib-1.0/null", tarfile.CHRTYPE),), "refused"),
    "a bomb": ((("lib-1.0/zero.cu", b"\0" * (300 << 20)),), "decompression bomb"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused(program: Program, tmp_path: Path, what: str) -> None:
    members, said = HOSTILE[what]
    archive = tar_of(tmp_path / "lib-1.0.tar.gz", MEMBER, *members)
    refused(program("ops", "--source", archive), 3, "lib-1.0.tar.gz", said)
    assert not list(tmp_path.rglob("evil*"))
    assert not list((tmp_path / "cache").rglob("sound.cpp"))


@pytest.mark.parametrize("name", ["torn.tar.gz", "torn.zip", "torn.whl"])
def test_a_torn_archive_is_refused(program: Program, tmp_path: Path, name: str) -> None:
    whole = tmp_path / name
    if name.endswith(".tar.gz"):
        tar_of(whole, MEMBER, ("lib-1.0/more.cpp", os.urandom(50_000)))
    else:
        zip_of(whole, MEMBER, ("lib-1.0/more.cpp", os.urandom(50_000)))
    whole.write_bytes(whole.read_bytes()[:20_000])
    refused(program("ops", "--source", whole), 3, name)


def test_a_file_that_is_no_archive(program: Program, tmp_path: Path) -> None:
    letter = tmp_path / "letter.tar.gz"
    letter.write_text("dear reader")
    refused(program("ops", "--source", letter), 3, "letter.tar.gz", "give a folder, or a .tar.gz")


def test_a_sound_archive_is_read(program: Program, tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "lib-1.0.zip", MEMBER)
    assert ops_of(program("ops", "--source", archive, "--json")) == ["kept::sound"]


# -- packages, network, disk ------------------------------------------------------------------------------------------


@pytest.fixture
def index() -> Iterator[Index]:
    """An index on the loopback address."""
    with serving() as served:
        yield served


def at_index(url: str) -> dict[str, str]:
    return {"OPWALKER_INDEX_URL": url, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def test_a_package_that_does_not_exist(program: Program, index: Index) -> None:
    refused(program("ops", "--source", "nosuchlib==1.0", environment=at_index(index.url)), 3, "nosuchlib")


def test_a_version_that_does_not_exist(program: Program, index: Index, tmp_path: Path) -> None:
    index.add("lib", "lib-1.0.tar.gz", tar_of(tmp_path / "made.tar.gz", MEMBER).read_bytes())
    refused(program("ops", "--source", "lib==9.9", environment=at_index(index.url)), 3, "9.9", "1.0")
    answer = program("ops", "--source", "lib==1.0", "--json", environment=at_index(index.url))
    assert ops_of(answer) == ["kept::sound"]


def test_a_fetched_archive_is_no_better_trusted(program: Program, index: Index, tmp_path: Path) -> None:
    hostile = tar_of(tmp_path / "made.tar.gz", MEMBER, ("../evil.cpp", b"x"))
    index.add("lib", "lib-1.0.tar.gz", hostile.read_bytes())
    refused(program("ops", "--source", "lib==1.0", environment=at_index(index.url)), 3, "climbs out of the tree")


def test_no_network(program: Program) -> None:
    answer = program("ops", "--source", "lib==1.0", environment=at_index("http://127.0.0.1:9/simple/"))
    refused(answer, 5, "cannot be reached", "or give a folder or an archive")


def no_room() -> None:
    """A disk on which nothing more can be written, as a process sees it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def kept_for_the_run(answer: Answer) -> None:
    assert ops_of(answer) == ["kept::sound"]
    assert answer.err.startswith("opwalker: note: ")
    assert answer.err.count("\n") == 1
    assert "for this run only" in answer.err


def test_a_full_disk_costs_the_cache_and_not_the_answer(program: Program, tree: Path) -> None:
    kept_for_the_run(program("ops", "--source", tree, "--json", preexec_fn=no_room))


def test_a_full_disk_when_unpacking(program: Program, tmp_path: Path) -> None:
    archive = tar_of(tmp_path / "lib-1.0.tar.gz", MEMBER)
    refused(program("ops", "--source", archive, preexec_fn=no_room), 5, "cache folder", "OPWALKER_CACHE")


def test_an_answer_that_cannot_be_written(tree: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "opwalker", "ops", "--source", str(tree), "--cache", str(tmp_path / "cache")],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WHATEVER_IT_TAKES,
        )
    assert done.returncode == 5
    assert done.stderr == "opwalker: error: cannot write the answer: no space left on device\n"


def test_a_cache_folder_that_cannot_be_used(program: Program, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environment = {"OPWALKER_CACHE": str(tmp_path / "file")}
    kept_for_the_run(program("ops", "--source", tree, "--json", environment=environment))
    archive = tar_of(tmp_path / "lib-1.0.tar.gz", MEMBER)
    refused(program("ops", "--source", archive, environment=environment), 5, str(tmp_path / "file"), "OPWALKER_CACHE")


def test_a_read_only_cache_folder(program: Program, tree: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:  # rights do not bind root: a file system on which nobody makes folders
        locked = Path("/sys")
    else:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o555)
    environment = {"OPWALKER_CACHE": str(locked / "opwalker")}
    kept_for_the_run(program("ops", "--source", tree, "--json", environment=environment))
    archive = tar_of(tmp_path / "lib-1.0.tar.gz", MEMBER)
    refused(program("ops", "--source", archive, environment=environment), 5, "cannot write to the cache folder")
