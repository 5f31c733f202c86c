"""The wheel: what is in it, and that its data is found where it is installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_all_of_its_data(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    kinds = (".py", ".hpp")  # the headers that stand in for CUDA's lie beside the code that uses them
    expected = {p.relative_to(ROOT).as_posix() for p in (ROOT / "opwalker").rglob("*") if p.suffix in kinds}
    for folder in ("grammars", "reference_kernels"):
        files = [path.relative_to(ROOT) for path in (ROOT / folder).rglob("*") if path.is_file()]
        expected |= {f"opwalker/{path.as_posix()}" for path in files if "__pycache__" not in path.parts}
    assert expected - held == set()
    assert sorted(name for name in held - expected if ".dist-info/" not in name) == []


def test_data_is_found_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import opwalker\n"
        "from opwalker import resources\n"
        "print(opwalker.__file__)\n"
        "print(resources.path('grammars/op_schema.lark'))\n"
        "print(resources.folder('reference_kernels'))\n"
    )
    site = str(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", program, site], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert all(line.startswith(site) for line in done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == 3


def test_one_version_and_the_extras_that_the_documents_name(wheel: Path) -> None:
    import opwalker

    metadata = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert f"\nVersion: {opwalker.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text
    assert {line.split()[1] for line in text.splitlines() if line.startswith("Provides-Extra:")} == {
        "verify",
        "plot",
        "audit",
        "clang",
        "dev",
    }


def test_every_third_party_import_is_a_declared_dependency() -> None:
    """What the package imports, wherever it does so, is in ``dependencies`` or in an extra; ``compression`` belongs to
    the standard library from Python 3.14 on."""
    import ast

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    modules = {one.split(">")[0].split("[")[0].replace("-", "_") for one in declared}
    other_names = {"libclang": "clang", "pyelftools": "elftools", "backports_zstd": "backports"}
    modules |= {other_names.get(name, name) for name in modules}
    imported = set()
    for path in (ROOT / "opwalker").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    assert sorted(imported - modules - set(sys.stdlib_module_names) - {"opwalker", "compression"}) == []
