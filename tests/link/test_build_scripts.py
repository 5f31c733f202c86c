"""Python build scripts to targets: setup scripts, JIT loads, classes that build, on miniatures of real idioms."""

from __future__ import annotations

import pytest

from opwalker.facts.build_files import read_build_file
from opwalker.link.build_lookup import builds_of, extension_names
from opwalker.link.build_targets import read_builds
from opwalker.model.build import BuildFacts, Target


def facts_of(files: dict[str, str], *others: str) -> BuildFacts:
    read = {path: file for path, text in files.items() if (file := read_build_file(path, text)) is not None}
    return read_builds(read, [*files, *others])


def setup(text: str, *others: str) -> BuildFacts:
    head = (
        "import os, sys, glob\nimport os.path as osp\nfrom pathlib import Path\nfrom itertools import product\n"
        "import torch\nfrom setuptools import setup, Extension\n"
        "from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension, CUDA_HOME\n"
    )
    return facts_of({"setup.py": head + text}, *others)


def only(facts: BuildFacts, build: str = "cuda") -> Target:
    (target,) = [target for target in facts.targets if build in target.builds]
    return target


def sources(target: Target) -> dict[str, str | None]:
    return {source.path: source.condition for source in target.sources}


def macros(target: Target) -> dict[str, tuple[str | None, str | None, str | None]]:
    return {d.name: (d.value, d.condition, d.language) for d in target.defines if d.name != "TORCH_EXTENSION_NAME"}


def test_an_extension_has_its_sources_macros_folders_and_name() -> None:
    facts = setup(
        """here = Path(__file__).parent.resolve()
setup(name="squall", ext_modules=[
    CUDAExtension(
        name="squall._C",
        sources=["csrc/bind.cpp",
                 "csrc/kernel.cu"],
        include_dirs=[here / "csrc", os.path.join(here, "third")],
        define_macros=[("WITH_X", None), ("LEVEL", "3")],
        extra_compile_args={"cxx": ["-O3", "-DHOST"], "nvcc": ["-DDEVICE=1", "--use_fast_math"]},
    )], cmdclass={"build_ext": BuildExtension})
"""
    )
    target = only(facts)
    assert (target.name, target.module, target.builds, target.kind) == ("_C", "squall._C", ("cuda",), "module")
    assert (target.file, target.line) == ("setup.py", 10)
    assert [(s.path, s.line) for s in target.sources] == [("csrc/bind.cpp", 12), ("csrc/kernel.cu", 13)]
    assert target.include_dirs == ("csrc", "third")
    assert macros(target) == {
        "WITH_X": (None, None, None),
        "LEVEL": ("3", None, None),
        "HOST": (None, None, "CXX"),
        "DEVICE": ("1", None, "CUDA"),
    }
    assert extension_names(facts, "csrc/bind.cpp") == ("_C",)


def test_a_plain_extension_gets_no_name_from_torch() -> None:
    facts = setup("setup(ext_modules=[Extension('low', ['low.c'], extra_compile_args=['-DA'])])")
    assert extension_names(facts, "low.c") == ()
    assert macros(only(facts)) == {"A": (None, None, None)}
    assert only(facts).builds == ("cuda", "rocm", "cpu")


def test_the_kind_of_build_is_decided_by_what_torch_says() -> None:
    facts = setup(
        """HIP = bool(torch.version.hip)
flags = []
if HIP:
    flags.append("-DUSE_ROCM")
elif CUDA_HOME is not None and torch.cuda.is_available():
    flags += ["-DUSE_CUDA"]
ext = CUDAExtension if HIP or CUDA_HOME is not None else CppExtension
files = ["a.cpp"] + (["a.cu"] if ext is CUDAExtension or not torch.version.cuda is None else [])
files = ["a.cpp", "a.cu"] if CUDA_HOME or HIP else ["a.cpp"]
setup(ext_modules=[ext("gust", files, extra_compile_args={"cxx": flags, "nvcc": flags})])
"""
    )
    assert [(t.builds, list(sources(t)), sorted(macros(t))) for t in facts.targets] == [
        (("cuda",), ["a.cpp", "a.cu"], ["USE_CUDA"]),
        (("rocm",), ["a.cpp", "a.cu"], ["USE_ROCM"]),
        (("cpu",), ["a.cpp"], []),
    ]


def test_a_script_that_never_asks_about_rocm_makes_no_rocm_build_of_device_code() -> None:
    facts = setup("setup(ext_modules=[CUDAExtension('m', ['a.cu']), CppExtension('n', ['n.cpp'])])")
    assert [(target.name, target.builds) for target in facts.targets] == [
        ("m", ("cuda",)),
        ("n", ("cuda", "rocm", "cpu")),
    ]


WALKED = (
    "lib/ext/bind.cpp",
    "lib/ext/quant/pack.cu",
    "lib/ext/quant/units/a.cu",
    "lib/ext/quant/notes.txt",
    "lib/other.cu",
)


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (
            "[os.path.relpath(os.path.join(r, f), start=os.path.dirname(__file__)) for r, _, fs in os.walk(folder)"
            + " for f in fs if f.endswith(('.cpp', '.cu'))]",
            WALKED[:3],
        ),
        ("[os.path.join(folder, f) for f in os.listdir(folder) if f.endswith('.cpp')]", WALKED[:1]),
        (
            "[os.path.join(r, d, 'a.cu') for r, ds, _ in os.walk(folder) for d in ds if d == 'units']",
            WALKED[2:3],
        ),
    ],
)
def test_folders_are_walked(listed: str, found: tuple[str, ...]) -> None:
    text = f"folder = os.path.join('lib', 'ext')\nsources = {listed}\n"
    facts = setup(text + "setup(ext_modules=[CUDAExtension('ext', sources)])\n", *WALKED)
    assert tuple(sources(only(facts))) == found


def test_lists_are_built_as_the_script_builds_them() -> None:
    facts = setup(
        """root = osp.join("csrc")
mains = [p for p in glob.glob(osp.join(root, "*.cpp")) if "skip" not in p]
def build():
    made = []
    for main, kind in product(sorted(mains), ["cpu", "cuda"]):
        name = main.split(os.sep)[-1][:-4]
        files = [main]
        path = osp.join(root, kind, f"{name}_{kind}.cu")
        if osp.exists(path):
            files += [path]
        macros = [("KIND", kind)]
        made += [CppExtension(f"lib._{name}_{kind}", files, define_macros=macros)]
    return made
setup(ext_modules=build())
""",
        *("csrc/add.cpp", "csrc/mul.cpp", "csrc/skip_me.cpp", "csrc/cuda/add_cuda.cu"),
    )
    made = [(t.module, list(sources(t)), macros(t)["KIND"][0]) for t in facts.targets if "cuda" in t.builds]
    assert made == [
        ("lib._add_cpu", ["csrc/add.cpp"], "cpu"),
        ("lib._add_cuda", ["csrc/add.cpp", "csrc/cuda/add_cuda.cu"], "cuda"),
        ("lib._mul_cpu", ["csrc/mul.cpp"], "cpu"),
        ("lib._mul_cuda", ["csrc/mul.cpp"], "cuda"),
    ]


def test_sources_made_from_literals_and_sets() -> None:
    facts = setup(
        """dims = [32] + ([64] if not os.getenv("NO_64") else [])
files = [f"inst/fwd_{d}_{t}.cu" for d, t in product(dims, ["fp16", "bf16"]) if not (d == 32 and t == "bf16")]
files += ["extra.cu", "gone.cu"]
files.remove("gone.cu")
files = sorted(set(files) - {"extra.cu"}) + ["last_%s.cu" % "one", "last_{}.cu".format(2)]
setup(ext_modules=[CUDAExtension("m", files)])
"""
    )
    assert list(sources(only(facts))) == [
        *("inst/fwd_32_fp16.cu", "inst/fwd_64_bf16.cu", "inst/fwd_64_fp16.cu", "last_one.cu", "last_2.cu")
    ]


def test_an_undecided_condition_is_told_and_both_ways_are_taken() -> None:
    facts = setup(
        """files = ["a.cpp"]
flags = ["-DALWAYS"]
if sys.platform == "win32":
    files.append("win.cpp")
    flags += ["-DWIN"]
else:
    files.append("posix.cpp")
version = get_version()
if version >= 12:
    flags.append("-DNEW")
setup(ext_modules=[CppExtension("m", files, extra_compile_args=flags)])
"""
    )
    target = only(facts, "cpu")
    windows = "sys.platform == 'win32'"
    assert sources(target) == {"a.cpp": None, "win.cpp": windows, "posix.cpp": f"NOT ({windows})"}
    assert macros(target) == {
        "ALWAYS": (None, None, None),
        "WIN": (None, windows, None),
        "NEW": (None, "version >= 12", None),
    }


def test_what_both_ways_have_is_there_in_any_case() -> None:
    facts = setup(
        """def flags(level):
    if level > 2:
        return ["-DA"]
    return []
extra = ["-DALWAYS"] + flags(ask()) + ["-DLAST"]
setup(ext_modules=[CppExtension("m", ["a.cpp"], extra_compile_args={"cxx": extra})])
"""
    )
    assert macros(only(facts, "cpu")) == {
        "ALWAYS": (None, None, "CXX"),
        "A": (None, "level > 2", "CXX"),
        "LAST": (None, None, "CXX"),
    }


def test_the_environment_is_unset() -> None:
    facts = setup(
        """if os.getenv("SKIP", "0") == "1" or "SKIP_ALL" in os.environ:
    raise SystemExit
os.environ["LEVEL"] = os.environ.get("LEVEL", "7")
flags = [f"-DLEVEL={int(os.environ['LEVEL'])}"]
setup(ext_modules=[CppExtension("m", ["a.cpp"], extra_compile_args=flags)])
"""
    )
    assert macros(only(facts, "cpu")) == {"LEVEL": ("7", None, None)}


def test_a_copy_of_a_host_source_stands_for_its_original() -> None:
    facts = setup(
        """if torch.version.hip:
    files = [f.replace(".cpp", ".cu") for f in glob.glob("ck/*.cpp")]
    setup(ext_modules=[CUDAExtension("m", files)])
""",
        "ck/api.cpp",
    )
    assert builds_of(facts, "ck/api.cpp") == ("rocm",)


def test_a_script_that_stops_makes_nothing_more() -> None:
    facts = setup(
        """one = CppExtension("one", ["1.cpp"])
if CUDA_HOME is None:
    raise RuntimeError("needs nvcc")
two = CppExtension("two", ["2.cpp"])
setup(ext_modules=[one, two])
"""
    )
    assert {(target.name, target.builds) for target in facts.targets} == {
        ("one", ("cuda", "rocm", "cpu")),
        ("two", ("cuda",)),
    }


def test_a_script_named_for_one_kind_of_build_is_for_that_one() -> None:
    text = "from torch.utils.cpp_extension import CUDAExtension as E\nE(name='g.ops', sources=['a.hip', 'b.cu'])\n"
    facts = facts_of({"setup_rocm.py": text, "setup_xpu.py": text})
    assert [(target.file, target.builds) for target in facts.targets] == [("setup_rocm.py", ("rocm",))]


def test_helpers_of_the_tree_are_followed() -> None:
    facts = facts_of(
        {
            "setup.py": "from setuptools import setup\nfrom tools.ext import make, FLAGS\n"
            "setup(ext_modules=[make('brisk', ['b.cpp'], FLAGS)])\n",
            "tools/ext.py": "from torch.utils.cpp_extension import CppExtension\nFLAGS = ['-DFROM_TOOLS']\n"
            "def make(name, sources, flags):\n    return CppExtension(name=name, sources=sources, "
            "extra_compile_args=flags)\n",
        }
    )
    assert [(target.name, target.file, list(macros(target))) for target in facts.targets] == [
        ("brisk", "tools/ext.py", ["FROM_TOOLS"])
    ]


def test_modules_that_cmake_makes_get_their_dotted_name_from_the_script() -> None:
    facts = facts_of(
        {
            "setup.py": "from setuptools import setup, Extension\nclass CMakeExtension(Extension):\n"
            "    def __init__(self, name, **kw):\n        super().__init__(name, sources=[], **kw)\n"
            "setup(ext_modules=[CMakeExtension(name='mistral.low._K')])\n",
            "CMakeLists.txt": "add_library(_K MODULE k.cpp)",
        }
    )
    assert [target.module for target in facts.targets] == ["mistral.low._K"]


# Builder classes in the way of DeepSpeed: a name and sources in each, the call of torch's helper in a base class.
BUILDER = """
import os, sys
from pathlib import Path
class MissingToolkit(Exception):
    pass
def toolkit_version():
    from torch.utils.cpp_extension import CUDA_HOME
    if CUDA_HOME is None:
        raise MissingToolkit("no toolkit")
    return ask()
class Builder:
    def __init__(self, name):
        self.name = name
        self.for_cpu = False
    def sources(self):
        pass
    def flags(self):
        return []
    def module_name(self):
        pass
    def full(self, path):
        return path if os.path.isabs(path) else os.path.join(Path(__file__).parent.parent.absolute(), path)
    def jit(self):
        from torch.utils.cpp_extension import load
        return load(name=self.name, sources=[self.full(p) for p in self.sources()], extra_cflags=self.flags())
    def prebuilt(self):
        try:
            toolkit_version()
        except MissingToolkit:
            self.for_cpu = True
        if self.for_cpu:
            from torch.utils.cpp_extension import CppExtension as Made
        else:
            from torch.utils.cpp_extension import CUDAExtension as Made
        return Made(name=self.module_name(), sources=[s for s in self.sources() if s], extra_compile_args=self.flags())
"""
ADAM = """
from .builder import Builder
class AdamBuilder(Builder):
    NAME = "adam"
    def __init__(self):
        super().__init__(name=self.NAME)
    def module_name(self):
        return f"calm.ops.{self.NAME}_op"
    def sources(self):
        return ["csrc/adam.cpp", "csrc/adam.cu"]
    def flags(self):
        return super().flags() + ["-DADAM"]
"""


def test_classes_with_a_name_and_sources_are_built_by_what_they_inherit() -> None:
    facts = facts_of({"builders/builder.py": BUILDER, "builders/adam.py": ADAM}, "csrc/adam.cpp", "csrc/adam.cu")
    made = [(t.kind, t.module or t.name, t.builds, f"{t.file}:{t.line}") for t in facts.targets]
    assert made == [
        ("jit", "adam", ("cuda",), "builders/adam.py:3"),
        ("module", "calm.ops.adam_op", ("cuda",), "builders/adam.py:3"),
    ]
    assert extension_names(facts, "csrc/adam.cpp") == ("adam", "adam_op")
    assert all(list(macros(target)) == ["ADAM"] for target in facts.targets)


LOADER = """
from torch.utils.cpp_extension import load
class JitModule:
    def __init__(self, *, name, sources, flags=None):
        self.name, self.sources, self.flags = name, sources, flags
    def get(self):
        kwargs = {"name": self.name, "sources": self.sources()}
        return load(**kwargs)
"""


def test_a_call_that_hands_name_and_sources_to_a_class_around_torch_is_a_target() -> None:
    facts = facts_of(
        {
            "pkg/jit.py": LOADER,
            "pkg/ops.py": "from pathlib import Path\nfrom .jit import JitModule\n"
            "def _sources():\n    root = Path(__file__).resolve().parents[1] / 'csrc'\n"
            "    return [str(root / 'bind.cpp'), *[str(p) for p in sorted(root.glob('k_*.cu'))]]\n"
            "OPS = JitModule(name='lull_ops', sources=_sources)\n",
            "pkg/other.py": "from somewhere import register\nregister(name='doc', sources=['csrc/bind.cpp'])\n",
        },
        *("csrc/bind.cpp", "csrc/k_b.cu", "csrc/k_a.cu"),
    )
    assert [(t.kind, t.name, t.builds, list(sources(t)), t.line) for t in facts.targets] == [
        ("jit", "lull_ops", ("cuda",), ["csrc/bind.cpp", "csrc/k_a.cu", "csrc/k_b.cu"], 6)
    ]


def test_a_load_anywhere_is_a_target() -> None:
    facts = facts_of(
        {
            "pkg/store/client.py": "from pathlib import Path\nimport torch.utils.cpp_extension\n"
            "root = Path(__file__).parent.resolve()\n"
            "utils = torch.utils.cpp_extension.load(name='store_utils', sources=[f'{root}/native/u.cpp'])\n",
            "pkg/lazy.py": "from torch.utils.cpp_extension import load\ndef get(debug=False):\n"
            "    if debug:\n        return None\n"
            "    return load('lazy_ops', ['pkg/lazy.cpp'], extra_cflags=['-DLAZY'])\n",
        },
        *("pkg/store/native/u.cpp", "pkg/lazy.cpp"),
    )
    assert {(t.name, tuple(sources(t)), t.builds) for t in facts.targets} == {
        ("store_utils", ("pkg/store/native/u.cpp",), ("cuda", "rocm", "cpu")),
        ("lazy_ops", ("pkg/lazy.cpp",), ("cuda", "rocm", "cpu")),
    }
    assert extension_names(facts, "pkg/store/native/u.cpp") == ("store_utils",)


def test_a_jit_build_counts_for_rocm_where_something_is_different_there() -> None:
    text = (
        "import torch\nfrom torch.utils.cpp_extension import load\n"
        "def flags():\n    return ['-DHIP_HALF'] if torch.version.hip else []\n"
        "a = load(name='a', sources=['a.cu'], extra_cuda_cflags=flags())\n"
        "b = load(name='b', sources=['b.cu'], extra_cuda_cflags=['-DB'])\n"
    )
    facts = facts_of({"jit.py": text}, "a.cu", "b.cu")
    assert builds_of(facts, "a.cu") == ("cuda", "rocm")
    assert builds_of(facts, "b.cu") == ("cuda",)


def test_what_is_missing_now_may_be_made_before_a_jit_build() -> None:
    facts = facts_of(
        {
            "jit.py": "from pathlib import Path\nfrom torch.utils.cpp_extension import load\n"
            "root = Path(__file__).parent\n"
            "def generated():\n    if not (root / 'gen').exists():\n        raise RuntimeError('run the generator')\n"
            "    return [str(p) for p in (root / 'gen').glob('*.cu')]\n"
            "def get():\n    return load(name='ops', sources=[str(root / 'ops.cu'), *generated()])\n"
        },
        "ops.cu",
    )
    assert list(sources(only(facts))) == ["ops.cu"]
    assert [problem.problem.kind for problem in facts.problems] == ["unresolved"]


def test_architectures_are_found_in_flags_and_lists() -> None:
    facts = setup(
        """flags = ["-gencode", "arch=compute_75,code=sm_75"]
if version >= Version("11.8"):
    flags += ["-gencode", "arch=compute_90a,code=sm_90a"]
ARCHS = os.getenv("TORCH_CUDA_ARCH_LIST", "8.0;8.9+PTX")
if CUDA_ARCH_VERSION >= Version("12.8"):
    pass
setup(ext_modules=[CUDAExtension("m", ["a.cu"], extra_compile_args={"nvcc": flags})])
"""
    )
    assert facts.architectures == ("75", "90a", "8.0", "8.9+PTX")


def test_extensions_of_a_project_file_are_targets() -> None:
    facts = facts_of(
        {
            "pyproject.toml": "[[tool.setuptools.ext-modules]]\nname = 'eddy._low'\nsources = ['src/low.c']\n"
            "define-macros = [['FAST', '1']]\n"
        }
    )
    assert [(t.module, list(sources(t)), macros(t)) for t in facts.targets] == [
        ("eddy._low", ["src/low.c"], {"FAST": ("1", None, None)})
    ]


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n",
        "x = 1\x00",
        "x = " + "(" * 5_000 + ")" * 5_000,
        "while True:\n    x = 1\n",
        "def f():\n    return f()\nf()\n",
        "x = [0]\nfor i in x:\n    x.append(i)\n",
        "a = b = c = d = " + "+".join(["'x'"] * 3_000),
        "x = " + str(10**3_000) + "\ny = f'{x}' + str(x)\n",
        "x = 0x" + "f" * 5_000 + "\ny = f'{x}'\n",
        "import setup\nfrom setup import *\n",
        "for a in range(10**9):\n    pass\n",
        "x = 'a' * 10**10 + '%s' % ('b' * 10**10)\n",
        "class A(A):\n    pass\nA()\n",
        "def g():\n    yield 1\nfor x in g():\n    pass\nglobal y\n",
        "x, *y = 1, 2, 3\nz = {**{1: 2}, 'a': 3}\nlambda: (yield)\n",
    ],
)
def test_no_script_raises_or_runs_on(text: str) -> None:
    facts = facts_of({"setup.py": text + "\nfrom setuptools import setup, Extension\nCppExtension = 1\n"})
    assert facts.targets == ()


def test_a_list_that_was_changed_is_asked_about_anew() -> None:
    facts = setup(
        """found = ["one"]
files = ["a.cpp"]
if check(found):
    found.append("two")
    if not check(found):
        files.append("b.cpp")
setup(ext_modules=[CppExtension("m", files)])
"""
    )
    assert set(sources(only(facts, "cpu"))) == {"a.cpp", "b.cpp"}


def test_an_element_keeps_the_line_that_it_was_written_on() -> None:
    facts = setup(
        """base = ["a.cpp",
        "b.cpp"]
def prefixed(names):
    out = []
    for name in names:
        out.append(name)
    return out
files = prefixed(base) + [f for f in base if f == "b.cpp"] + ["c.cpp"]
setup(ext_modules=[CppExtension("m", sorted(files))])
"""
    )
    assert [(s.path, s.line) for s in only(facts, "cpu").sources] == [("a.cpp", 8), ("b.cpp", 9), ("c.cpp", 15)]


@pytest.mark.parametrize(
    ("text", "builds"),
    [
        ("setup(ext_modules=[CUDAExtension('m', ['a.cpp'])])", ("cuda",)),
        ("setup(ext_modules=[CUDAExtension('m', ['a.cpp', 'a.cu'])])", ("cuda",)),
        ("f = ['-DX'] if torch.version.cuda else []\nsetup(ext_modules=[CUDAExtension('m', ['a.cpp'])])", ("cuda",)),
        ("print(torch.version.hip)\nsetup(ext_modules=[CUDAExtension('m', ['a.cpp'])])", ("cuda", "rocm")),
        ("setup(ext_modules=[CppExtension('m', ['a.cpp'])])", ("cuda", "rocm", "cpu")),
    ],
)
def test_a_module_for_a_device_is_not_for_every_device(text: str, builds: tuple[str, ...]) -> None:
    assert [target.builds for target in setup(text).targets] == [builds]
