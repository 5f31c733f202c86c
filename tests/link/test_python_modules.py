"""Which file an import leads to."""

from __future__ import annotations

import pytest

from opwalker.link.python_importers import Imports
from opwalker.link.python_modules import Modules
from opwalker.link.stamped import HeldFacts
from opwalker.model.python import PyLight
from opwalker.notation.python_imports import parse_import


def modules(*paths: str, **imports: tuple[str, ...]) -> Modules:
    """The modules of a tree; ``imports`` by path with ``__`` for ``/`` and without ``.py``."""
    light = {path: PyLight() for path in paths}
    for name, statements in imports.items():
        light[name.replace("__", "/").replace("/init/", "__init__") + ".py"] = PyLight(statements)
    return Modules(light)


@pytest.mark.parametrize(
    ("paths", "here", "name", "level", "target"),
    [
        (["pkg/__init__.py", "pkg/a.py"], "x.py", "pkg.a", 0, "pkg/a.py"),
        (["pkg/__init__.py", "pkg/a.py"], "x.py", "pkg", 0, "pkg/__init__.py"),
        (["src/pkg/__init__.py", "src/pkg/a.py"], "tests/x.py", "pkg.a", 0, "src/pkg/a.py"),
        (["python/sgl/__init__.py", "python/sgl/a.py"], "x.py", "sgl.a", 0, "python/sgl/a.py"),
        (["ns/sub/a.py"], "x.py", "ns.sub.a", 0, "ns/sub/a.py"),
        (["ns/sub/a.py"], "x.py", "ns.sub", 0, "ns/sub/"),
        (["scripts/a.py", "scripts/b.py", "other/b.py"], "scripts/a.py", "b", 0, "scripts/b.py"),
        (["x/b.py", "y/b.py"], "a.py", "b", 0, None),
        (["pkg/__init__.py", "pkg/b.py", "pkg/c/__init__.py", "pkg/c/a.py"], "pkg/c/a.py", "b", 2, "pkg/b.py"),
        (["pkg/__init__.py", "pkg/b.py"], "pkg/__init__.py", "b", 1, "pkg/b.py"),
        (["pkg/__init__.py", "pkg/b.py"], "pkg/b.py", "", 1, "pkg/__init__.py"),
        (["pkg/__init__.py", "pkg/torch.py", "pkg/a.py"], "pkg/a.py", "torch", 0, None),
        (["a/__init__.py"], "a/__init__.py", "b", 0, None),
    ],
)
def test_module_names(paths: list[str], here: str, name: str, level: int, target: str | None) -> None:
    assert modules(*paths).module(here, name, level) == target


def test_a_name_of_a_package_is_its_attribute_before_it_is_a_submodule() -> None:
    tree = modules("pkg/f.py", "pkg/g.py", pkg__init_=())
    tree = Modules({"pkg/__init__.py": PyLight(("from .f import f",)), "pkg/f.py": PyLight(), "pkg/g.py": PyLight()})
    (f,) = tree.bound("x.py", parse_import("from pkg import f")[0])
    (g,) = tree.bound("x.py", parse_import("from pkg import g")[0])
    assert (f.target, f.name) == ("pkg/__init__.py", "f")
    assert (g.target, g.name) == ("pkg/g.py", None)
    assert tree.origins("pkg/__init__.py", "f") == [("pkg/f.py", "f")]


def test_origins_follow_re_exports_stars_and_circles() -> None:
    tree = Modules(
        {
            "a.py": PyLight(("from b import *", "from c import x as y")),
            "b.py": PyLight(("from c import z", "from a import w")),
            "c.py": PyLight(("from a import w",)),
        }
    )
    assert tree.origins("a.py", "y") == [("c.py", "x")]
    assert ("c.py", "z") in tree.origins("a.py", "z")
    assert tree.origins("c.py", "w") != []


def importing(light: dict[str, PyLight], before: Imports | None = None) -> Imports:
    held = HeldFacts(light)
    imports = before or Imports("")
    imports.renew(held, Modules(held))
    return imports


def who(imports: Imports, path: str) -> set[tuple[str, str, str | None]]:
    return {(file, alias, name) for alias, name, files in imports.of(path) for file in files}


IMPORTING = {
    "pkg/__init__.py": PyLight(),
    "pkg/ops.py": PyLight(),
    "a.py": PyLight(("from pkg import ops as o", "import pkg.ops")),
    "pkg/b.py": PyLight(("from .ops import f as g", "from . import ops"), mentions_ops=True),
    "c.py": PyLight(("import torch", "from other import ops")),
}


def test_who_imports_what() -> None:
    found = importing(IMPORTING)
    assert who(found, "pkg/ops.py") == {
        ("a.py", "o", None), ("a.py", "pkg.ops", None), ("pkg/b.py", "g", "f"), ("pkg/b.py", "ops", None),
    }  # fmt: skip
    assert found.mentions == ["pkg/b.py"]


@pytest.mark.parametrize(
    "changed",
    [
        {"a.py": PyLight(("import os",))},
        {"a.py": PyLight(("from pkg.ops import *", "from pkg import b"), mentions_ops=True)},
        {"c.py": PyLight(("from pkg.ops import h",)), "pkg/b.py": PyLight()},
        {"pkg/__init__.py": PyLight(("from .b import g as ops",))},
    ],
)
def test_who_imports_what_is_brought_up_to_date(changed: dict[str, PyLight]) -> None:
    light = IMPORTING | changed
    renewed, anew = importing(light, importing(IMPORTING)), importing(light)
    for path in light:
        assert who(renewed, path) == who(anew, path)
    assert (renewed.mentions, renewed.stamps) == (anew.mentions, anew.stamps)
