"""Builds as sets of macros: what is known to be set, and known not to be, for CUDA, ROCm and CPU.

Data about compilers and torch's build system; what a tree's own build files set is added to it. ``__CUDA_ARCH__`` is
not set while host code is compiled and takes several values while device code is: so a build has two configurations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opwalker.expand.files import Configuration
from opwalker.model.build import Define

_COMMON: dict[str, str | None] = {
    "__linux__": "1",
    "__GNUC__": "13",
    "__x86_64__": "1",
    "__cplusplus": "202002L",
    "NDEBUG": None,
    "__LP64__": "1",
}
#: Set by no build of a kind that is known here; ``__CUDA__`` is of a clang that compiles CUDA itself, in nvcc's place.
_NEVER = frozenset(
    "_WIN32 _WIN64 _MSC_VER __APPLE__ __INTEL_COMPILER __CUDACC_RTC__ __HIPCC_RTC__ __CLANG_TIDY__ __INTELLISENSE__ "
    "__SYCL_DEVICE_ONLY__ SYCL_LANGUAGE_VERSION DOXYGEN_SHOULD_SKIP_THIS __NVCOMPILER BUILD_NAMEDTENSOR USE_MPS "
    "USE_XPU "
    "WITH_CUDA_DISABLED __MACA__ USE_MACA USE_MUSA __CUDA__".split()
)
_HIP = (
    "USE_ROCM __HIPCC__ __HIP__ __HIP_PLATFORM_AMD__ __HIP_PLATFORM_HCC__ __HIP_DEVICE_COMPILE__ "
    "TORCH_HIP_VERSION USE_HIP"
).split()
_HIP_DEVICE = (
    "__HIP__GFX9__",
    "__HIP__MI3XX__",
    "__gfx942__",
    "__gfx950__",
    "__gfx90a__",
    "__HIP__GFX1X__",
    "__GFX9__",
)
#: The toolkit that is read for unless another one is asked for.
CUDA_VERSION = "13000"
_CUDA: dict[str, str | None] = {
    "__CUDACC__": "1",
    "__NVCC__": "1",
    "USE_CUDA": "1",
    "CUDA_VERSION": CUDA_VERSION,
    "CUDART_VERSION": CUDA_VERSION,
    "__CUDACC_VER_MAJOR__": "13",
    "__CUDACC_VER_MINOR__": "0",
    "WITH_CUDA": "1",
}
_ROCM: dict[str, str | None] = {
    "USE_ROCM": "1",
    "__HIPCC__": "1",
    "__HIP__": "1",
    "__HIP_PLATFORM_AMD__": "1",
    "USE_HIP": "1",
}

#: Macros of compilers, toolkits and platforms: what they are, the kind of build decides alone.
TOOLCHAIN = _NEVER.union(_HIP, _HIP_DEVICE, _CUDA, _ROCM)
#: Those of them that are known of every kind of build: what such a one leaves standing, all of its builds compile.
DECIDED = TOOLCHAIN.difference(_HIP_DEVICE)


def configuration(
    build: str,
    device: bool,
    from_build_files: Iterable[Define] = (),
    asked: Iterable[tuple[str, str | None]] = (),
    closed: bool = False,
    unset: Iterable[str] = (),
    archs: Iterable[str] = (),
    units: Mapping[str, Iterable[Define]] | None = None,
    flagged: Iterable[str] = (),
) -> Configuration:
    """The macros of a build. ``asked`` are the user's own ``--define`` and go before everything; ``closed`` says that
    the build files were read, ``unset`` are macros that they set for other architectures alone; ``archs`` the
    architectures that device code is compiled for, where that is known; ``units`` what single files get besides,
    ``flagged`` what something is compiled with."""
    defines = dict(_COMMON)
    undefined = {*_NEVER, *unset}
    if build == "cuda":
        defines.update(_CUDA)
        undefined |= {*_HIP, *_HIP_DEVICE}
    elif build == "rocm":
        defines.update(_ROCM)
        undefined |= {"__CUDACC__", "__NVCC__", "CUDA_VERSION", "CUDART_VERSION", "__CUDACC_VER_MAJOR__"}
    else:
        undefined |= {*_HIP, *_HIP_DEVICE, *_CUDA}
    if not device:
        undefined |= {"__CUDA_ARCH__", "__HIP_DEVICE_COMPILE__"}
    values: dict[str, set[str | None]] = {}
    for define in from_build_files:
        values.setdefault(define.name, set()).add(define.value)
    for name, found in values.items():
        # A macro that targets set to different values is known to be set, but to what depends on the target.
        defines[name] = found.pop() if len(found) == 1 else None
        undefined.discard(name)
    for name, value in asked:
        defines[name] = value if value is not None else "1"
        undefined.discard(name)
    passes = tuple(architecture_macros(name) for name in archs) if device and build == "cuda" else ()
    if "__CUDA_ARCH__" in defines:
        passes = ()
    wanted = {name for name, _ in asked}
    own = {p: {d.name: d.value for d in found if d.name not in wanted} for p, found in (units or {}).items()}
    return Configuration(build, defines, frozenset(undefined - defines.keys()), closed, passes, own, frozenset(flagged))


def architecture_macros(name: str) -> dict[str, str | None]:
    """The macros that nvcc sets in its pass for one architecture (``"9.0a"``)."""
    bare = name.removesuffix("+PTX")
    whole = bare.rstrip("af").replace(".", "")
    macros: dict[str, str | None] = {"__CUDA_ARCH__": f"{whole}0"}
    if bare.endswith("a"):
        macros[f"__CUDA_ARCH_FEAT_SM{whole}_ALL"] = "1"
        macros["__CUDA_ARCH_SPECIFIC__"] = f"{whole}0"
    if bare.endswith(("a", "f")):
        macros["__CUDA_ARCH_FAMILY_SPECIFIC__"] = f"{whole}0"
    return macros
