"""Extraction in worker processes: whatever one file does, it costs that file and no other."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from opwalker.errors import InternalError
from opwalker.facts import workers, workers_job
from opwalker.facts.registry import PROBLEM, Extractor, named_problem, problem_name
from opwalker.facts.workers import Extracted, extract_all
from opwalker.facts.workers_job import Job, Limits
from opwalker.model.source import FileEntry, Problem, SourceFile
from tests.interrupts import children, eventually, group, interrupted_everywhere

HERE = __name__


@dataclass(frozen=True, slots=True)
class FakeFacts:
    words: tuple[str, ...] = ()
    process: int = 0
    problems: tuple[Problem, ...] = ()


def read(root_path: str, entry: FileEntry) -> SourceFile:
    try:
        data = Path(root_path, entry.path).read_bytes()
    except OSError:
        return SourceFile(entry.path, "", entry.language, "", (Problem("unreadable", "gone"),))
    text = data.decode()
    problems = (Problem("changed-while-read", "restless"),) if text.startswith("restless") else ()
    return SourceFile(entry.path, text, entry.language, hashlib.md5(data).hexdigest(), problems)


def words(source: SourceFile) -> FakeFacts:
    """Does what the first word of the text says, then lists the words."""
    do = source.text.split(" ", 1)[0].strip()
    if do == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif do == "exit":
        os._exit(3)
    elif do == "hang":
        hold(source)
    elif do == "stubborn":
        # As a long call into C would: nothing of Python runs, so no signal is answered.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        hold(source)
    elif do == "compute":
        while True:
            pass
    elif do == "eat":
        held = [bytearray(8 << 20) for _ in range(1000)]
        assert held
    elif do == "stack":
        raise MemoryError
    elif do == "fault":
        raise KeyError("a fault of ours")
    elif do == "once":
        marker = Path(source.text.split()[1])
        if not marker.exists():
            marker.touch()
            os._exit(4)
    elif do == "slow":
        time.sleep(0.05)
    return FakeFacts(tuple(source.text.split()), os.getpid(), source.problems)


def hold(source: SourceFile) -> None:
    """Never comes back, and says so: in a file for the parent of a worker, to the timer where this process has one."""
    if left := signal.getitimer(signal.ITIMER_REAL)[0]:
        assert left <= LIMITS.seconds
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        Path(source.text.split()[1]).write_text(str(os.getpid()))
    while True:
        time.sleep(600)


def nested(source: SourceFile) -> FakeFacts:
    """Recurses once for each opening bracket."""

    def depth(at: int) -> int:
        return 1 + depth(at + 1) if source.text.startswith("(", at) else 0

    return FakeFacts((str(depth(0)),))


def names(facts: FakeFacts) -> list[tuple[str, str]]:
    return [(word, "word") for word in facts.words]


WORDS = Extractor("words", f"{HERE}:words", f"{HERE}:FakeFacts", ())
NESTED = Extractor("nested", f"{HERE}:nested", f"{HERE}:FakeFacts", ())
LIMITS = Limits(seconds=600.0, memory=160 << 20)
SHORT = Limits(seconds=0.5)


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., list[FileEntry]]:
    """Writes ``{path: text}`` and gives the entries."""

    def write(files: dict[str, str], language: str = "cpp") -> list[FileEntry]:
        entries = []
        for path, text in files.items():
            (tmp_path / path).write_text(text)
            os.utime(tmp_path / path, ns=(1_000_000_000, 1_000_000_000))
            entries.append(FileEntry(path, len(text), 1_000_000_000, language))
        return entries

    return write


def job(root: Path, *extractors: Extractor, limits: Limits = LIMITS, kept: dict | None = None) -> Job:
    return Job(str(root), f"{HERE}:read", {"cpp": extractors or (WORDS,)}, kept or {}, limits)


def run(tasks: Sequence[FileEntry], work: Job, **options) -> dict[str, Extracted]:
    with contextlib.closing(extract_all(tasks, work, **options)) as found:
        rows = list(found)
    by_path = {row.entry.path: row for row in rows}
    assert len(by_path) == len(rows)
    return by_path


def facts(row: Extracted, kind: str = "words") -> FakeFacts:
    (made,) = [made for made in row.made if made.kind == kind]
    return msgspec.msgpack.decode(made.blob, type=FakeFacts)


def problems(row: Extracted, kind: str = "words") -> list[str]:
    return [problem.kind for problem in facts(row, kind).problems]


def plain(count: int) -> dict[str, str]:
    return {f"f{n}.cu": f"run kernel{n}" for n in range(count)}


def test_every_file_comes_once_with_its_facts(tree, tmp_path: Path) -> None:
    files = plain(200)
    seen: list[tuple[int, int]] = []
    found = run(tree(files), job(tmp_path), jobs=2, progress=lambda *step: seen.append(step))
    assert found.keys() == files.keys()
    for path, text in files.items():
        assert facts(found[path]).words == tuple(text.split())
        assert found[path].digest == hashlib.md5(text.encode()).hexdigest()
        assert found[path].made[0].names == (("run", "word"), (text.split()[1], "word"))
        assert not found[path].passing
    pids = {facts(row).process for row in found.values()}
    assert len(pids) == 2 and os.getpid() not in pids
    assert seen == [(n, 200) for n in range(1, 201)]


def test_few_files_are_read_in_this_process(tree, tmp_path: Path) -> None:
    found = run(tree(plain(3)), job(tmp_path))
    assert {facts(row).process for row in found.values()} == {os.getpid()}


def test_a_risky_a_large_and_a_deep_file_are_not_read_in_this_process(tree, tmp_path: Path) -> None:
    tasks = tree({"risky.cu": "run a", "large.cu": "run " * 400_000, "deep.cu": "run " + "{" * 300 + "}" * 300})
    found = run(tasks, job(tmp_path, limits=Limits()), risky={"risky.cu"})
    assert os.getpid() not in {facts(row).process for row in found.values()}


def test_a_thread_does_not_read_in_this_process(tree, tmp_path: Path) -> None:
    tasks, found = tree(plain(1)), {}
    thread = threading.Thread(target=lambda: found.update(run(tasks, job(tmp_path))))
    thread.start()
    thread.join()
    assert facts(found["f0.cu"]).process != os.getpid()


@pytest.fixture
def only_hanging_takes_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No file but one that hangs ever reaches a limit, however slow the machine; what hangs writes its process here."""
    marker, look = tmp_path / "hanging", workers._Worker.look

    def looked(worker: workers._Worker, passed: float) -> None:
        hangs = marker.exists() and marker.read_text() == str(worker.process.pid)
        look(worker, passed if hangs else 0.0)

    monkeypatch.setattr(workers._Worker, "look", looked)
    return marker


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("die", "worker-died", "SIGKILL"),
        ("exit", "worker-died", "status 3"),
        ("compute", "timeout", "0.5 seconds"),
        ("hang", "timeout", "0.5 seconds"),
        ("stubborn", "timeout", "0.5 seconds"),
        ("eat", "memory", "160 MiB"),
        ("stack", "too-deep", "nested"),
        ("fault", "extractor-failed", "KeyError: 'a fault of ours' (test_workers.py:"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_bad_file_costs_itself_only(
    tree, tmp_path: Path, only_hanging_takes_time: Path, text: str, kind: str, says: str, jobs: int
) -> None:
    text = f"{text} {only_hanging_takes_time}" if kind == "timeout" else text
    files = plain(40) | {"bad.cu": text}
    found = run(tree(files), job(tmp_path, limits=SHORT if kind == "timeout" else LIMITS), jobs=jobs)
    assert found.keys() == files.keys()
    assert {path for path, row in found.items() if problems(row)} == {"bad.cu"}
    (problem,) = facts(found["bad.cu"]).problems
    assert problem.kind == kind and says in problem.message
    assert found["bad.cu"].digest == hashlib.md5(text.encode()).hexdigest()
    assert found["bad.cu"].made[0].names == ((problem_name(problem), PROBLEM),)


def test_where_processes_cannot_fork(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_START", "spawn")
    files = plain(30) | {"bad.cu": "die"}
    found = run(tree(files), job(tmp_path), jobs=2)
    assert found.keys() == files.keys()
    assert {path for path, row in found.items() if problems(row)} == {"bad.cu"}


def test_many_bad_files_cost_themselves_only(tree, tmp_path: Path) -> None:
    bad = {f"bad{n}.cu": text for n, text in enumerate(["die", "exit", "eat", "die now", "fault", "stack"])}
    found = run(tree(plain(60) | bad), job(tmp_path), jobs=2)
    assert len(found) == 66
    assert {path for path, row in found.items() if problems(row)} == bad.keys()


def test_a_hang_of_few_files_ends_in_time(tree, tmp_path: Path) -> None:
    found = run(tree({"a.cu": "hang", "b.cu": "run b"}), job(tmp_path))
    assert problems(found["a.cu"]) == ["timeout"] and problems(found["b.cu"]) == []
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_worker_that_was_killed_from_outside_costs_nothing(tree, tmp_path: Path) -> None:
    found = run(tree(plain(20) | {"x.cu": f"once {tmp_path / 'marker'}"}), job(tmp_path), jobs=2)
    assert len(found) == 21 and not any(problems(row) for row in found.values())


def test_ten_thousand_levels_are_a_problem_of_that_file(tree, tmp_path: Path) -> None:
    deep = "(" * 10_000 + ")" * 10_000
    for files in ({"deep.cu": deep, "ok.cu": "(()"}, plain(30) | {"deep.cu": deep, "ok.cu": "(()"}):
        found = run(tree(files), job(tmp_path, WORDS, NESTED), jobs=2)
        assert problems(found["deep.cu"], "nested") == ["too-deep"]
        assert problems(found["deep.cu"], "words") == []
        assert facts(found["ok.cu"], "nested").words == ("2",)


def test_facts_that_are_there_are_not_made_again(tree, tmp_path: Path) -> None:
    known = hashlib.md5(b"die").hexdigest()
    found = run(tree({"bad.cu": "die", "b.cu": "run b"}), job(tmp_path, kept={"words": {known}}), risky={"bad.cu"})
    assert found["bad.cu"].digest == known and found["bad.cu"].made == ()
    assert facts(found["b.cu"]).words == ("run", "b")


def test_a_file_in_a_language_without_extractors_gets_a_digest(tree, tmp_path: Path) -> None:
    found = run(tree({"CMakeLists.txt": "project"}, "cmake"), job(tmp_path))
    assert found["CMakeLists.txt"].digest == hashlib.md5(b"project").hexdigest()
    assert found["CMakeLists.txt"].made == ()


def test_what_may_pass_is_looked_at_again(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_job, "_TICK_NS", 24 * 3600 * 10**9)
    tasks = tree({"restless.cu": "restless", "gone.cu": "x", "calm.cu": "x"})
    (tmp_path / "gone.cu").unlink()
    just_now = FileEntry("young.cu", 1, time.time_ns(), "cpp")
    (tmp_path / "young.cu").write_text("x")
    found = run([*tasks, just_now], job(tmp_path))
    assert {path: row.passing for path, row in found.items()} == {
        "restless.cu": True,
        "gone.cu": True,
        "young.cu": True,
        "calm.cu": False,
    }
    assert problems(found["gone.cu"]) == ["unreadable"]
    assert found["gone.cu"].digest and found["gone.cu"].digest != found["calm.cu"].digest
    assert found["restless.cu"].digest != hashlib.md5(b"restless").hexdigest()


def test_a_file_above_the_limit_is_not_opened(tmp_path: Path) -> None:
    huge = FileEntry("not even there.cu", 10**12, 1, "cpp")
    found = run([huge], job(tmp_path))
    (problem,) = facts(found[huge.path]).problems
    assert problem.kind == "too-large" and "1,000,000,000,000 bytes" in problem.message


@pytest.mark.parametrize("count", [1, 20])
def test_a_function_that_is_not_there_is_a_fault_of_ours(tree, tmp_path: Path, count: int) -> None:
    missing = Extractor("x", f"{HERE}:nowhere", f"{HERE}:FakeFacts", ())
    with pytest.raises(InternalError, match="nowhere cannot be loaded"):
        run(tree(plain(count)), job(tmp_path, missing))


def test_workers_that_cannot_start_are_given_up(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "serve", lambda *_: os._exit(9))
    with pytest.raises(InternalError, match="ended with status 9"):
        run(tree(plain(20)), job(tmp_path), jobs=2)


@pytest.mark.parametrize("count", [1, 6], ids=["in this process", "by a worker"])
def test_an_interrupt_anywhere_leaves_no_worker_and_no_timer(tree, tmp_path: Path, count: int) -> None:
    handler, before = signal.getsignal(signal.SIGALRM), children()
    tasks = tree({f"{n}.cu": "die" if n == 3 else f"run {n}" for n in range(count)})
    places = []
    for place in interrupted_everywhere(workers, lambda: run(tasks, job(tmp_path), jobs=1)):
        # At the door of the clean-up itself nothing is killed: a worker then ends as its pipe closes.
        assert eventually(lambda: children() <= before), place
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) is handler, place
        places.append(place)
    assert len(places) > 20


def test_leaving_early_ends_the_workers(tree, tmp_path: Path) -> None:
    before = children()
    found = extract_all(tree({f"{n}.cu": "slow" for n in range(50)}), job(tmp_path), jobs=2)
    next(found)
    assert len(children() - before) == 2
    found.close()
    assert children() - before == set()


MANY_SLOW = """
    import contextlib, os, sys
    sys.path.insert(0, sys.argv[1])
    from opwalker.facts.registry import Extractor
    from opwalker.facts.workers import extract_all
    from opwalker.facts.workers_job import Job, Limits
    from opwalker.model.source import FileEntry
    os.environ["SLOW_WHILE"] = str(os.getpid())
    tasks = [FileEntry(f"{n}.cu", 1, 1, "cpp") for n in range(400)]
    job = Job(".", "slow_facts:read", {"cpp": (Extractor("x", "slow_facts:slow", "slow_facts:F", ()),)}, {}, Limits())
    try:
        with contextlib.closing(extract_all(tasks, job, jobs=2)) as found:
            next(found)
            # In one piece: print() writes the text and the end of the line apart, and an interrupt may come between.
            os.write(1, b"one\\n")
            for _ in found:
                pass
    except KeyboardInterrupt:
        os.write(1, b"interrupted\\n")
"""

SLOW_FACTS = """
import os, time
from dataclasses import dataclass
from opwalker.model.source import SourceFile

@dataclass
class F:
    problems: tuple = ()

def read(root_path, entry):
    return SourceFile(entry.path, "", entry.language, entry.path)

def slow(source):
    # The first batches are done; what follows takes for as long as the parent lives.
    while int(source.path.removesuffix(".cu")) >= 150 and os.getppid() == int(os.environ["SLOW_WHILE"]):
        time.sleep(0.01)
    return F()
"""


@pytest.fixture
def slow_parent(tmp_path: Path):
    """A process of its own group with two workers, at the point where the first files are done."""
    (tmp_path / "slow_facts.py").write_text(SLOW_FACTS)
    package = str(Path(workers.__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(MANY_SLOW), package],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    ) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "one\n"
        yield parent
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)


def test_an_interrupt_ends_cleanly(slow_parent: subprocess.Popen) -> None:
    os.killpg(slow_parent.pid, signal.SIGINT)
    out, error = slow_parent.communicate(timeout=300)
    assert (out, error) == ("interrupted\n", "")
    assert group(slow_parent.pid) == set()


def test_workers_of_a_killed_parent_end_soon(slow_parent: subprocess.Popen) -> None:
    assert len(group(slow_parent.pid)) == 3
    slow_parent.kill()
    slow_parent.wait()
    assert eventually(lambda: group(slow_parent.pid) == set())


def test_a_problem_comes_back_from_its_name() -> None:
    problem = Problem("bad-schema", "tab\tand\nline", 3, 14)
    assert named_problem(problem_name(problem)) == Problem("bad-schema", "tab and line", 3, 14)
    assert len(named_problem(problem_name(Problem("x", "y" * 9999))).message) == 500


def test_sending_costs_little(tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files go to the workers and come back many at a time: one message there and one back for each batch."""
    sent: list[int] = []
    received: list[int] = []
    send, decode = workers._Worker.send, workers.decode

    def counted_send(worker: workers._Worker, batch: list[int]) -> None:
        sent.append(len(batch))
        send(worker, batch)

    def counted_decode(data: bytes) -> list | str:
        answer = decode(data)
        received.append(len(answer))
        return answer

    monkeypatch.setattr(workers._Worker, "send", counted_send)
    monkeypatch.setattr(workers, "decode", counted_decode)
    run(tree({f"{n}.cu": "run" for n in range(1500)}), job(tmp_path), jobs=2)
    assert sorted(sent) == sorted(received)
    assert sum(sent) == 1500 and len(sent) <= 1500 / 40
