"""Reference kernels compiled: all that are wanted in parallel, each kept by what it was made from.

In: the folder of kernels, which of them (and which wrong variants), for which machine. Out: shared libraries in the
cache, or what the compiler said. A compiler or tool that is missing is one ``EnvironmentMissing`` that names what
brings it. Nothing is loaded or run here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from opwalker.errors import EnvironmentMissing
from opwalker.model.source import SourceFile
from opwalker.source.cache import make_folder
from opwalker.views.verify.rewriting import rewritten


class Wanted(Struct, frozen=True):
    """A kernel file to build: as it is, or in one of its wrong variants; with ``threads``, as the program that the file
    ``<op>_threads.cpp`` beside it makes of it."""

    op: str
    variant: str | None = None
    threads: bool = False

    @property
    def label(self) -> str:
        """``rms_norm``, or ``rms_norm-NO_STRIDE`` for a variant."""
        return "-".join(part for part in (self.op, self.variant, "threads" if self.threads else None) if part)


class Built(Struct, frozen=True):
    """What became of it: ``library`` is the file, or None; then ``error`` is what the compiler said first."""

    wanted: Wanted
    library: Path | None
    error: str | None = None


class Toolchain(Struct, frozen=True):
    """How a file is compiled: the command before the file names, and what of it a cached result depends on."""

    command: tuple[str, ...]
    identity: str
    emulated: bool


def nvcc(architectures: Iterable[str]) -> Toolchain:
    """nvcc with torch's headers, for architectures such as ``"9.0"`` or ``"9.0a"``."""
    try:
        from torch import __version__ as torch_version
        from torch.utils import cpp_extension
    except ImportError as error:
        raise EnvironmentMissing("torch is missing", "pip install 'opwalker[verify]'") from error
    home = os.environ.get("CUDA_HOME") or cpp_extension.CUDA_HOME
    program = os.path.join(home, "bin", "nvcc") if home else shutil.which("nvcc")
    if not program or not os.path.exists(program):
        raise EnvironmentMissing(
            "nvcc is missing", "install the CUDA toolkit (its package is cuda-toolkit), or set CUDA_HOME to where it is"
        )
    flags = ["-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-DUSE_CUDA", *cpp_extension.COMMON_NVCC_FLAGS]
    for name in architectures:
        digits = name.replace(".", "")
        flags += ["-gencode", f"arch=compute_{digits},code=sm_{digits}"]
    for folder in cpp_extension.include_paths():
        flags += ["-isystem", folder]
    flags += ["-Xlinker", "--no-as-needed"]
    for folder in cpp_extension.library_paths():
        # torch opens its own libraries for itself alone: what is not named here is not found when the op is loaded.
        flags += [f"-L{folder}", *(f"-l{name}" for name in _TORCH if (Path(folder) / f"lib{name}.so").exists())]
    return Toolchain((program, *flags), f"{_version(program)} torch {torch_version}", emulated=False)


#: The libraries that hold torch's stable interface; one that a build of torch lacks is left out.
_TORCH = ("torch_cpu", "torch_cuda")

#: The headers that stand in for CUDA's and torch's.
_EMULATION = Path(__file__).parent / "emulation"


#: Behind the words of the host compiler: a program that ThreadSanitizer watches, with one thread for each block.
_THREADS = ["-g", "-fsanitize=thread", "-DCUDA_ON_CPU_ONE_THREAD"]


def host_compiler() -> Toolchain:
    """g++ (or ``$CXX``) with the headers that stand in for CUDA."""
    program = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not program:
        raise EnvironmentMissing("there is no C++ compiler", "install the package g++")
    flags = ["-O1", "-std=c++17", "-shared", "-fPIC", "-w", "-fno-strict-aliasing", "-pthread"]
    # A vector access that is not aligned would stop a GPU: it stops here as well.
    flags += ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]
    flags += ["-I", str(_EMULATION), "-include", "cuda_on_cpu.hpp", "-x", "c++"]
    return Toolchain((program, *flags), _version(program), emulated=True)


def _version(program: str) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentMissing(f"{program} does not run: {error}") from error
    return " ".join(said.stdout.split())


def build(folder: Path, wanted: Iterable[Wanted], toolchain: Toolchain, cache: Path, jobs: int) -> tuple[Built, ...]:
    """Builds what is not in the cache. ``folder`` holds ``<op>.cu`` and ``common/``."""
    wanted = tuple(wanted)
    sources = _sources(folder, toolchain, cache)
    common = _digest(path.read_bytes() for path in sorted(sources.glob("common/*")))
    if toolchain.emulated:
        common += _digest(path.read_bytes() for path in sorted(_EMULATION.glob("*.hpp")))
    edges: list[tuple[list[str], Path]] = []
    places: dict[Wanted, Path] = {}
    for one in wanted:
        own = [sources / f"{one.op}.cu", *([sources / f"{one.op}_threads.cpp"] if one.threads else [])]
        define = [f"-DOPWALKER_WRONG_{one.variant}"] if one.variant else []
        command = [*toolchain.command, "-I", str(sources), *define, *map(str, own)]
        command = [word for word in command if word != "-shared"] + _THREADS if one.threads else command
        texts = [path.read_bytes() for path in own]
        key = _digest((*texts, common.encode(), toolchain.identity.encode(), repr(command).encode()))
        places[one] = cache / "kernels" / f"{one.label}-{key}.so"
        if not places[one].is_file():
            edges.append((command, places[one]))
    if edges:
        make_folder(cache / "kernels")
        _ninja(cache / "kernels", edges, jobs)
    return tuple(
        Built(one, place) if place.is_file() else Built(one, None, _first_error(place)) for one, place in places.items()
    )


def _sources(folder: Path, toolchain: Toolchain, cache: Path) -> Path:
    """Where the files to compile lie: the folder itself, or a copy rewritten for a C++ compiler."""
    if not toolchain.emulated:
        return folder
    files = {}
    for path in sorted([*folder.glob("*.cu"), *folder.glob("*_threads.cpp"), *folder.glob("common/*.cuh")]):
        text = path.read_text(encoding="utf-8")
        files[path.relative_to(folder)] = rewritten(SourceFile(path.name, text, "cuda", "")).encode()
    place = cache / "kernels" / f"rewritten-{_digest([*map(bytes, files), *files.values()])}"
    for relative, text in files.items():
        make_folder((place / relative).parent)
        if not (place / relative).is_file():
            _write(place / relative, text)
    return place


def _write(path: Path, text: bytes) -> None:
    """Writes a file so that another process sees all of it or none."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(text)
    draft.replace(path)


def _digest(parts: Iterable[bytes]) -> str:
    state = hashlib.blake2b(digest_size=12)
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.hexdigest()


def _ninja(place: Path, edges: list[tuple[list[str], Path]], jobs: int) -> None:
    """Runs every command; each leaves its library, or what it printed beside it."""
    program = shutil.which("ninja", path=os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", ""))))
    if program is None:
        raise EnvironmentMissing("ninja is missing", "pip install ninja")
    lines = ["rule compile", "  command = $command", "  description = $out", ""]
    for command, target in edges:
        draft = f"{target}.{os.getpid()}.tmp"
        text = " ".join(_quoted(word) for word in (*command, "-o", draft))
        text += f" > {_quoted(str(target) + '.log')} 2>&1 && mv {_quoted(draft)} {_quoted(str(target))}"
        escaped = str(target).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
        lines += [f"build {escaped}: compile", f"  command = {text.replace('$', '$$')}", ""]
    script = place / f"build-{os.getpid()}.ninja"
    script.write_text("\n".join(lines), encoding="utf-8")
    try:
        subprocess.run(
            [program, "-k", "0", "-j", str(jobs), "-f", str(script)], cwd=place, capture_output=True, check=False
        )
    finally:
        script.unlink(missing_ok=True)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _first_error(place: Path) -> str:
    """The line of the compiler's output that says what is wrong."""
    log = Path(f"{place}.log")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    told = [line.strip() for line in lines if "error" in line.lower()] or [line for line in lines if line.strip()]
    return told[0] if told else "the compiler said nothing"
