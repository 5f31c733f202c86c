"""C functions that Python looks up through ctypes."""

from __future__ import annotations

import textwrap

from tests.python_trees import facts


def foreign(text: str) -> list[tuple[str, int, str | None]]:
    return [(one.name, one.line, one.function) for one in facts(textwrap.dedent(text)).foreign]


def test_attributes_items_and_getattr_of_a_loaded_library() -> None:
    text = """
    import ctypes
    lib = ctypes.CDLL("libx.so")
    lib.quantize.argtypes = [ctypes.c_int]
    def run(x):
        lib.quantize(x)
        getattr(lib, "dequantize")(x)
        lib["absmax"](x)  # lib.not_this()
    other.not_this()
    """
    assert foreign(text) == [
        ("quantize", 4, None),
        ("quantize", 6, "run"),
        ("dequantize", 7, "run"),
        ("absmax", 8, "run"),
    ]


def test_a_wrapper_class_with_a_table_of_names() -> None:
    text = """
    class Runtime:
        exported = [
            Function("cudaSetDevice", restype, [ctypes.c_int]),
            Function("cudaMalloc", restype, [ctypes.c_void_p]),
        ]
        def __init__(self, path):
            lib = ctypes.CDLL(path)
            for each in Runtime.exported:
                self.funcs[each.name] = getattr(lib, each.name)
    def unrelated():
        print(Function("outside"), get("lower"))
    """
    assert foreign(text) == [("cudaSetDevice", 4, None), ("cudaMalloc", 5, None)]


def test_a_library_handed_to_a_function_and_kept_under_another_owner() -> None:
    text = """
    class Wrapper:
        def __init__(self, path):
            self.cdll = ctypes.CDLL(path)
            declare(self.cdll)
    def declare(cdll):
        cdll.pause.argtypes = [ctypes.c_char_p]
    text = "cdll.so"
    """
    assert foreign(text) == [("pause", 7, "declare")]


def test_files_without_a_library_have_none() -> None:
    assert foreign("import ctypes\nlib = load('x')\nlib.f(1)\n") == []
