"""What is acquired with which call, and with which it is released again: names of public interfaces, as data."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from opwalker.notation.regex import Regex


class Family(Struct, frozen=True):
    """A kind of resource. ``position`` is the argument that the acquiring call fills in (None: it returns the thing);
    ``acquire`` and ``release`` match the names of calls without qualifiers."""

    kind: str
    acquire: Regex
    release: Regex
    position: int | None = 0


def _family(kind: str, acquire: str, release: str, position: int | None = 0) -> Family:
    return Family(kind, Regex(rf"(?:{acquire})\Z"), Regex(rf"(?:{release})\Z"), position)


#: In the order in which they are tried.
FAMILIES = (
    _family("GIL state", "PyGILState_Ensure", "PyGILState_Release", None),
    _family("thread state", "PyEval_SaveThread", "PyEval_RestoreThread", None),
    _family("IPC mapping", "(?:cuda|hip)IpcOpenMemHandle", "(?:cuda|hip)IpcCloseMemHandle"),
    _family("pinned host memory", "(?:cuda|hip)(?:MallocHost|HostAlloc|HostMalloc)",
            "(?:cuda|hip)(?:FreeHost|HostFree)"),
    _family("registered host memory", "(?:cuda|hip)HostRegister", "(?:cuda|hip)HostUnregister"),
    _family("device memory", "(?:cuda|hip)Malloc(?:Async|Managed|Pitch|3D|FromPoolAsync)?|hipExtMallocWithFlags",
            "(?:cuda|hip)Free(?:Async)?"),
    _family("device memory", "cuMemAlloc(?:Async|Managed|Pitch)?(?:_v2)?", "cuMemFree(?:Async)?(?:_v2)?"),
    _family("virtual address range", "cuMemAddressReserve|hipMemAddressReserve", "cuMemAddressFree|hipMemAddressFree"),
    _family("physical memory handle", "cuMemCreate|hipMemCreate", "cuMemRelease|hipMemRelease"),
    _family("mapping", "cuMemMap|hipMemMap", "cuMemUnmap|hipMemUnmap"),
    _family("memory pool", "(?:cuda|hip)MemPoolCreate", "(?:cuda|hip)MemPoolDestroy"),
    _family("event", "(?:cuda|hip)EventCreate(?:WithFlags)?|cuEventCreate", "(?:cuda|hip)EventDestroy|cuEventDestroy"),
    _family("stream", "(?:cuda|hip)StreamCreate(?:With\\w+)?|cuStreamCreate\\w*",
            "(?:cuda|hip)StreamDestroy|cuStreamDestroy"),
    _family("graph", "(?:cuda|hip)Graph(?:Create|Instantiate\\w*)", "(?:cuda|hip)Graph(?:Exec)?Destroy"),
    _family("library handle", "(?:cublas|cublasLt|cudnn|cusparse|cusparseLt|cusolverDn|hipblas|hipblasLt)Create",
            "(?:cublas|cublasLt|cudnn|cusparse|cusparseLt|cusolverDn|hipblas|hipblasLt)Destroy"),
    _family("communicator", "ncclCommInit\\w+|ncclCommSplit", "ncclComm(?:Destroy|Abort|Finalize)"),
    _family("symmetric device memory", "nvshmem(?:x)?_(?:malloc|align|calloc)", "nvshmem(?:x)?_free", None),
    _family("memory region", "ibv_reg_\\w*mr\\w*", "ibv_dereg_mr", None),
    _family("queue pair", "ibv_create_qp\\w*", "ibv_destroy_qp", None),
    _family("completion queue", "ibv_create_cq\\w*", "ibv_destroy_cq", None),
    _family("protection domain", "ibv_alloc_pd", "ibv_dealloc_pd", None),
    _family("device context", "ibv_open_device", "ibv_close_device", None),
    _family("memory map", "mmap(?:64)?", "munmap", None),
    _family("shared memory object", "shm_open", "close|shm_unlink", None),
    _family("file", "fopen(?:64)?|fdopen", "fclose", None),
    _family("file descriptor", "open(?:64|at)?|socket|accept4?|epoll_create1?|eventfd|memfd_create", "close", None),
    _family("loaded library", "dlopen", "dlclose", None),
    _family("host memory", "malloc|calloc|aligned_alloc|strdup|numa_alloc\\w*", "free|numa_free", None),
    _family("host memory", "posix_memalign", "free"),
)  # fmt: skip
#: ``new`` and ``delete``, which are no calls.
OBJECT = "object"

#: ``new``, ``delete``, and what is called.
_NAMED = Regex(r"\b(?:new|delete)\b|\b(\w+)\s*\(")


def owns(code: str, start: int = 0, end: int | None = None) -> bool:
    """Whether code names an acquisition or a release, for a quick no."""
    found = _NAMED.finditer(code, start, len(code) if end is None else end)
    return any(one[1] is None or _is_known(one[1]) for one in found)


@lru_cache(maxsize=8192)
def _is_known(name: str) -> bool:
    return acquired(name) is not None or bool(released(name))


def acquired(name: str) -> Family | None:
    """The family that a call acquires from, by its name without qualifiers."""
    return next((family for family in FAMILIES if family.acquire.match(name)), None)


def released(name: str) -> tuple[Family, ...]:
    """The families that a call may release from."""
    return tuple(family for family in FAMILIES if family.release.match(name))
