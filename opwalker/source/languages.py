"""Which language a file is read as, judged by its name alone.

In: a file name. Out: one of ``model.source.LANGUAGES``, or None for a file that no stage reads. Contents are not
looked at: that would cost an open for every file of a tree.
"""

from __future__ import annotations

_BY_SUFFIX = {
    # HIP sources hold kernels and launches, so they need the CUDA grammar.
    **dict.fromkeys((".cu", ".cuh", ".hip"), "cuda"),
    **dict.fromkeys(
        (".cpp", ".cc", ".cxx", ".c", ".c++", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp", ".inc"), "cpp"
    ),
    ".py": "python",
    ".cmake": "cmake",
}

#: A template that renders to source: the suffix before this one says what it renders to (``decode.cu.jinja``).
_TEMPLATE_SUFFIXES = frozenset((".jinja", ".jinja2", ".j2", ".in"))

#: Words in the names of op lists.
_OP_LISTS = frozenset(("functions", "ops", "op", "operators", "native"))

_SOURCE_LANGUAGES = ("cuda", "cpp")


def language_of(name: str) -> str | None:
    """The language of a file called ``name`` (a base name or a path), or None."""
    dot = name.rfind(".")
    if dot < 0:
        return None
    suffix = name[dot:]
    language = _BY_SUFFIX.get(suffix)
    if language is not None:
        return language
    return _by_whole_name(name[name.rfind("/") + 1 :], suffix.lower())


def _by_whole_name(name: str, suffix: str) -> str | None:
    """The rarer cases: fixed names, templates, and suffixes in capitals (``.C``, ``.CU``)."""
    if suffix == ".txt":
        return "cmake" if name == "CMakeLists.txt" else None
    if suffix == ".toml":
        return "toml" if name == "pyproject.toml" else None
    if suffix in (".yaml", ".yml"):
        # Op lists such as native_functions.yaml or ops.yaml; every other YAML file of a tree is configuration.
        words = name[: -len(suffix)].lower().replace("-", "_").split("_")
        return "yaml" if not _OP_LISTS.isdisjoint(words) else None
    if suffix in _TEMPLATE_SUFFIXES:
        stem = name[: -len(suffix)]
        inner = _BY_SUFFIX.get(stem[stem.rfind(".") :].lower()) if "." in stem else None
        return inner if inner in _SOURCE_LANGUAGES else None
    return _BY_SUFFIX.get(suffix)
