"""What is kept of Python files from one state of a tree to the next: after any edit, as after a fresh start."""

from __future__ import annotations

import textwrap
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwalker.asking import Options, Session
from opwalker.link import python_units

#: A small library: an op with wrappers, a helper that registers, a custom op, classes with bases, re-exports.
FILES = {
    "kit/__init__.py": "from ._ops import rowsum as exported\n",
    "kit/_ops.py": """
        import torch

        def rowsum(x):
            return torch.ops._K.rowsum(x)

        def scale(x, by):
            torch.ops._K.scale(x, by)

        @torch.library.register_fake("_K::rowsum")
        def rowsum_fake(x):
            return x
        """,
    "kit/helper.py": """
        import torch
        from torch.library import Library

        lib = Library("kit", "FRAGMENT")

        def register(op_name, op_func, target=lib):
            target.define(op_name + "(Tensor x) -> Tensor")
            target.impl(op_name, op_func, "CUDA")
            return getattr(torch.ops.kit, op_name)
        """,
    "kit/made.py": """
        import torch
        from kit.helper import register

        def twice(x):
            return x

        double = register("twice", twice)

        @torch.library.custom_op("kit::third", mutates_args=())
        def third(x: torch.Tensor) -> torch.Tensor:
            return x
        """,
    "kit/layers.py": """
        from kit import _ops as ops
        from kit.made import double

        class Base:
            def forward(self, x):
                return ops.rowsum(x)

        class Layer(Base):
            def __init__(self):
                self.scale(1)

            def scale(self, x):
                ops.scale(x, 2)
                return double(x)
        """,
    "kit/model.py": """
        from kit.layers import Layer
        import kit

        def run(x):
            return Layer().forward(x) + kit.exported(x)
        """,
    "kit/starred.py": "from kit._ops import *\n\ndef direct(x):\n    return scale(x, 3)\n",
    "tools/other.py": "import os\n\ndef nothing():\n    return os.sep\n",
    "kit/fast.py": "import kit_cuda\n\ndef quick(x):\n    return kit_cuda.quick(x)\n",
    "setup.py": "from setuptools import setup\nsetup(ext_modules=[CUDAExtension('kit_cuda', ['a.cu'])])\n",
}

#: Edits by name: new texts by path, None for a file that goes.
EDITS: dict[str, dict[str, str | None]] = {
    "comment": {"kit/_ops.py": FILES["kit/_ops.py"] + "        # more\n"},
    "line above all": {"kit/_ops.py": "        # first\n" + FILES["kit/_ops.py"]},
    "line above a helper": {"kit/helper.py": "\n\n" + FILES["kit/helper.py"]},
    "another call": {
        "kit/model.py": FILES["kit/model.py"] + "\n        def more(x):\n            return kit.exported(x)\n"
    },
    "a call goes": {"kit/layers.py": FILES["kit/layers.py"].replace("ops.scale(x, 2)", "pass")},
    "a call of an op": {"tools/other.py": "import torch\n\ndef f(x):\n    return torch.ops._K.scale(x, 1)\n"},
    "a caller of a wrapper": {"tools/other.py": "from kit.starred import direct\n\ndef f(x):\n    return direct(x)\n"},
    "an import of a package": {"tools/other.py": "import kit\n\ndef f(x):\n    return kit.exported(x)\n"},
    "a wrapper is renamed": {"kit/_ops.py": FILES["kit/_ops.py"].replace("def rowsum(x)", "def rowsums(x)")},
    "a wrapper calls another op": {"kit/_ops.py": FILES["kit/_ops.py"].replace("ops._K.rowsum", "ops._K.colsum")},
    "a wrapper no longer calls": {"kit/_ops.py": FILES["kit/_ops.py"].replace("torch.ops._K.rowsum(x)", "x")},
    "a registration more": {
        "kit/made.py": FILES["kit/made.py"]
        + "\n        def fourth(x):\n            pass\n\n        register('fourth', fourth)\n"
    },
    "a registration goes": {
        "kit/made.py": FILES["kit/made.py"].replace('double = register("twice", twice)', "double = twice")
    },
    "the name registered": {"kit/made.py": FILES["kit/made.py"].replace('"twice"', '"two"')},
    "the namespace": {"kit/helper.py": FILES["kit/helper.py"].replace('Library("kit"', 'Library("box"')},
    "the helper's key": {"kit/helper.py": FILES["kit/helper.py"].replace('"CUDA"', '"CPU"')},
    "the helper does not register": {"kit/helper.py": "def register(op_name, op_func):\n    return op_func\n"},
    "a base class goes": {"kit/layers.py": FILES["kit/layers.py"].replace("Layer(Base)", "Layer")},
    "a method more": {
        "kit/layers.py": FILES["kit/layers.py"]
        + "\n            def forward(self, x):\n                return ops.scale(x, 9)\n"
    },
    "the re-export changes": {"kit/__init__.py": "from ._ops import scale as exported\n"},
    "the re-export goes": {"kit/__init__.py": ""},
    "a syntax error": {"kit/layers.py": FILES["kit/layers.py"].replace("class Layer(Base):", "class Layer(Base:")},
    "all of it goes": {"kit/_ops.py": ""},
    "a file goes": {"kit/starred.py": None},
    "the wrappers go": {"kit/_ops.py": None},
    "a file is renamed": {"kit/layers.py": None, "kit/blocks.py": FILES["kit/layers.py"]},
    "a file more": {"kit/extra.py": "from kit.layers import Layer\n\ndef f(x):\n    return Layer().scale(x)\n"},
    "a file that hides another": {
        "tools/kit.py": "exported = None\n",
        "tools/other.py": "import kit\nkit.exported(1)\n",
    },
    "a package less": {"kit/__init__.py": None},
    "two at once": {"kit/model.py": "", "kit/layers.py": "import kit\n\ndef f(x):\n    kit.exported(x)\n"},
    "another module is compiled": {"setup.py": FILES["setup.py"].replace("kit_cuda", "kit_ext")},
    "a file of a compiled module's name": {"kit_cuda.py": "def quick(x):\n    return x\n"},
    "another call of a compiled module": {"tools/other.py": "import kit_cuda as k\n\ndef f(x):\n    k.slow(x)\n"},
    "a C++ file": {"csrc/a.cu": "void f() {}\n"},
}


class Tree:
    """A tree on disk with a cache that lives on, and what Python says of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = folder / "cache"
        self._trees = 0
        (folder / "tree").mkdir()
        self.files: dict[str, str] = {}

    def edit(self, files: dict[str, str | None]) -> None:
        for path, text in files.items():
            place = self._folder / "tree" / path
            if text is None:
                place.unlink(missing_ok=True)
                self.files.pop(path, None)
            elif self.files.get(path) != text:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(textwrap.dedent(text))
                self.files[path] = text

    def answer(self) -> bytes:
        return self._ask(self._cache)

    def forget(self) -> None:
        """Let the store drop all answers, and no facts."""
        session = Session(Options(source=str(self._folder / "tree"), jobs=1, cache=self._cache))
        session.store._write(lambda db: db.execute("DELETE FROM results"))
        session.close()

    def answer_anew(self) -> bytes:
        self._trees += 1
        return self._ask(self._folder / f"fresh{self._trees}")

    def _ask(self, cache: Path) -> bytes:
        session = Session(Options(source=str(self._folder / "tree"), jobs=1, cache=cache))
        try:
            return msgspec.json.format(msgspec.json.encode(session.python))
        finally:
            session.close()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.edit(dict(FILES))
    made.answer()
    return made


@pytest.mark.parametrize("name", EDITS)
def test_after_an_edit_and_after_it_is_taken_back(tree: Tree, name: str) -> None:
    before = tree.answer()
    tree.edit(EDITS[name])
    assert tree.answer() == tree.answer_anew()
    tree.edit({**dict.fromkeys(EDITS[name]), **{p: FILES[p] for p in EDITS[name] if p in FILES}})
    assert tree.answer() == before


def test_what_was_kept_may_go(tree: Tree) -> None:
    """The store drops what was used longest ago: the answer is worked out again."""
    before = tree.answer()
    tree.forget()
    assert tree.answer() == before
    tree.edit(EDITS["another call of a compiled module"])
    tree.forget()
    assert tree.answer() == tree.answer_anew() != before


def test_most_edits_show(tree: Tree) -> None:
    """Else the comparison above would prove nothing."""
    before = tree.answer()
    silent = {"comment", "a C++ file", "a base class goes", "a file that hides another", "a syntax error"}
    unseen = set()
    for name, edit in EDITS.items():
        tree.edit(edit)
        if tree.answer() == before:
            unseen.add(name)
        tree.edit({**dict.fromkeys(edit), **{p: FILES[p] for p in edit if p in FILES}})
    assert unseen <= silent


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(names=st.lists(st.sampled_from(sorted(EDITS)), min_size=2, max_size=6))
def test_after_edits_in_any_order(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    tree = Tree(tmp_path_factory.mktemp("edits"))
    tree.edit(dict(FILES))
    tree.answer()
    for name in names:
        tree.edit(EDITS[name])
        tree.answer()
    assert tree.answer() == tree.answer_anew()
    tree.edit({**{path: None for path in tree.files if path not in FILES}, **FILES})
    assert tree.answer() == tree.answer_anew()


def test_only_what_changed_is_resolved_again(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = python_units.Units._renew
    monkeypatch.setattr(
        python_units.Units, "_renew", lambda self, graph, path: (made.append(path), real(self, graph, path))[1]
    )
    tree.edit(EDITS["comment"])
    tree.answer()
    assert made == []
    tree.edit(EDITS["another call"])
    tree.answer()
    assert set(made) == {"kit/model.py"}


def test_what_is_kept_may_be_damaged(tree: Tree, tmp_path: Path) -> None:
    session = Session(Options(source=str(tmp_path / "tree"), jobs=1, cache=tmp_path / "cache"))
    keys = [row[0] for row in session.store._db.execute("SELECT key FROM results WHERE key LIKE 'python %'")]
    assert len(keys) == 4
    for key in keys:
        session.store.put_result(key, b"\xc1 no message")
    session.close()
    tree.edit(EDITS["a registration more"])
    assert tree.answer() == tree.answer_anew()


def test_whatever_is_looked_at_is_looked_up_by_name(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that leans on a file leans on names in it, or it would not be made again when they change."""
    seen: dict[str, dict[str, list[str]]] = {}
    real = python_units.Units.renew

    def renew(self: python_units.Units, *arguments: object) -> list[str]:
        found = real(self, *arguments)
        if self._face is python_units.names_face:
            seen.update(self.kept.reads)
        return found

    monkeypatch.setattr(python_units.Units, "renew", renew)
    tree.answer_anew()
    assert set(seen["kit/model.py"]) >= {"kit/layers.py", "kit/__init__.py", "kit/_ops.py"}
    assert [(path, other) for path, reads in seen.items() for other, names in reads.items() if not names] == []
