"""Calls that end a path without a kernel of the source: libraries, memory operations, torch itself.

Knowledge about names of public interfaces, as data. First match counts.
"""

from __future__ import annotations

import re

from opwalker.notation.regex import Regex

#: Kernel launches through the runtime or driver: name -> (style, index of the kernel, how the configuration is passed).
LAUNCH_CALLS: dict[str, tuple[str, int, str]] = {
    "cudaLaunchKernel": ("cudaLaunchKernel", 0, "kernel-grid-block-args-shared-stream"),
    "hipLaunchKernel": ("cudaLaunchKernel", 0, "kernel-grid-block-args-shared-stream"),
    "cudaLaunchCooperativeKernel": ("cooperative", 0, "kernel-grid-block-args-shared-stream"),
    "hipLaunchCooperativeKernel": ("cooperative", 0, "kernel-grid-block-args-shared-stream"),
    "cudaLaunchKernelEx": ("cudaLaunchKernelEx", 1, "config"),
    "cudaLaunchKernelExC": ("cudaLaunchKernelEx", 1, "config"),
    "hipLaunchKernelExC": ("cudaLaunchKernelEx", 1, "config"),
    "cuLaunchKernel": ("cuLaunchKernel", 0, "driver"),
    "hipModuleLaunchKernel": ("cuLaunchKernel", 0, "driver"),
    "cuLaunchKernelEx": ("cuLaunchKernel", 1, "config"),
    "cuLaunchCooperativeKernel": ("cooperative", 0, "driver"),
    "launch_kernel_on_cluster": ("cudaLaunchKernelEx", 1, "cluster"),  # of CUTLASS
    "hipLaunchKernelGGL": ("triple_chevron", 0, "kernel-grid-block-shared-stream"),
    "hipLaunchKernelGGLInternal": ("triple_chevron", 0, "kernel-grid-block-shared-stream"),
}

#: The fields of a launch configuration object, in order, by how the configuration is passed.
CONFIG_FIELDS = {
    "config": ("gridDim", "blockDim", "dynamicSmemBytes", "stream"),
    "cluster": ("grid_dims", "block_dims", "cluster_dims", "smem_size_in_bytes", "cuda_stream"),
}

#: Runtime calls that take a kernel without launching it.
KERNEL_QUERIES = Regex(
    r"(?:cuda|hip)(?:FuncSetAttribute|FuncGetAttributes|FuncSetCacheConfig|FuncSetSharedMemConfig|Occupancy\w+|GetFuncBySymbol|"
    r"GetSymbolAddress|FuncGetName|FuncGetModule|FuncGetParamInfo|KernelSetAttributeForDevice)\Z|cu(?:Func\w+|Occupancy\w+|Kernel\w+)\Z"
)

#: Words that stand before brackets as a function's name does.
NO_FUNCTIONS = frozenset(
    "static_cast reinterpret_cast const_cast dynamic_cast sizeof decltype bit_cast alignof noexcept typeid".split()
)

_TABLE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "library",
        Regex(
            r"(?:::)?(?:(?:cublas|cublasLt|cudnn|cusparse|cusparseLt|cusolver|cufft|curand|nccl|nvshmem|nvshmemx|rocblas|hipblas|"
            r"hipblasLt|miopen|rccl|mkl|cblas|dnnl|oneDNN|ncclGin)\w*)\Z|"
            r"(?:.*::)?(?:cub|hipcub|rocprim)::Device\w+::\w+\Z|(?:.*::)?thrust::(?!device\b|host\b|raw_\w+|make_\w+|get\b|cuda\b|"
            r"device_\w+|counting_iterator|transform_iterator)\w+\Z|(?:.*::)?cutlass::(?:device_kernel|Kernel2?|\w*[lL]aunch\w*|.*::run)\Z|"
            r"(?:.*::)?(?:cudnn_frontend|deep_gemm)::.*|at::cuda::blas::.*|at::native::.*"
        ),
    ),
    (
        "memory",
        Regex(
            r"(?:::)?(?:cuda|hip)(?:Memcpy|Memset|Malloc|Free|HostAlloc|HostRegister|HostUnregister|HostGetDevicePointer|IpcOpen|IpcGet|IpcClose|MemPrefetch|"
            r"MemAdvise|MemPool|MemcpyBatch)\w*\Z|(?:::)?cu(?:Mem|Ipc)\w*\Z|(?:::)?hipMem\w*\Z|(?:std::)?mem(?:cpy|set|move)\Z"
        ),
    ),
    (
        "torch",
        Regex(
            r"(?:::)?(?:at|torch|torch::stable|torch::headeronly)::(?:_?[a-z]\w*)\Z|"
            r"(?:::)?(?:aoti_torch_(?:call_dispatcher|aten_\w+|cuda_\w+|cpu_\w+|copy_|zero_|clone\w*|empty\w*|new_\w+)|torch_call_dispatcher)\Z"
        ),
    ),
)
_TORCH_NOT = frozenset(
    "dtype device kCUDA kCPU kFloat size sizes stride elementSize get_device checkedNArg make_optional nullopt "
    "getCurrentCUDAStream getCurrentDeviceProperties get_current_stream cuda detail isFloatingType toString "
    "typeMetaToScalarType "
    "optional".split()
)
#: Calls that do no device work, wherever their bodies are: the standard library, getters and checks of torch, the
#: runtime's queries, and names in capitals, which are macros that check or report.
_HARMLESS = Regex(
    r"(?:::)?(?:std|c10|at|torch|py|pybind11|nb|nanobind|tvm|fmt|cuda|nvtx3?|cute)::.*|(?:::)?(?:cuda|hip|cu[A-Z]|hip[A-Z])\w*|"
    r"(?:.*::)?[A-Z][A-Z0-9_]*|(?:.*::)?(?:min|max|abs|ceil|floor|sqrt|log2?f?|exp2?f?|pow|round|printf|fprintf|snprintf|puts|"
    r"getenv|atoi|atol|strcmp|strncmp|strlen|strtol|exit|abort|assert|move|forward|swap|get|tie|make_\w+|to_string|"
    r"numeric_limits|is_same|isnan|isinf|free|malloc|calloc|realloc|lround|lrint|fmod|div|memcmp|dlsym|dlopen|usleep|"
    r"a?(?:sin|cos|tan)h?f?|atan2f?|fabs[fl]?|hypotf?|cbrtf?|erfc?f?|fmaf?|fm(?:in|ax)f?|truncf?|rintf?|expm1f?|log1pf?|"
    r"static_assert|alignof|offsetof|typeid|throw|__\w+|int|float|double|bool|unsigned|int\d+_t|uint\d+_t|size_t|dim3|"
    r"(?:u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4]|half|__half)"
)
_HARMLESS_TYPE = Regex(
    r"(?:std|c10|at|torch|py|pybind11|tvm|cuda|nb|nanobind)::|.*(?:Tensor|Stream|Guard|string|vector|Options|Generator|Array|"
    r"Shape|Device|Event|Properties|Prop|IntArrayRef|ArrayRef|Scalar|DataPtr|lock|mutex)\w*\Z|dim3|[a-z_]+\d*(?:_t)?\Z"
)
_HANDLE = Regex(r'\bfind(?:SchemaOrThrow|Schema|Op)\s*\((?:\s*\{?\s*"([^"]*)"\s*(?:,\s*"([^"]*)")?)?')
_TENSOR_METHODS = frozenset(
    "copy_ fill_ zero_ index_select index_put_ matmul mm bmm add_ mul_ div_ sub_ contiguous to clone cumsum sum max "
    "min "
    "sort argsort topk scatter_ gather masked_fill_ softmax cat expand repeat transpose_ nonzero bincount item".split()
)


def terminal_kind(name: str) -> str | None:
    """The kind of terminal that a called name is: ``library``, ``memory``, ``torch``; None for anything else."""
    for kind, pattern in _TABLE:
        if pattern.match(name):
            if kind == "torch" and name.rsplit("::", 1)[-1] in _TORCH_NOT:
                return None
            return kind
    return None


def dispatched_op(method: str, receiver: str) -> str | None:
    """The op that a method of an operator's handle calls through torch's dispatcher: its name, or how the handle is
    found where that is no literal; None where the receiver is no such handle."""
    found = _HANDLE.search(receiver) if method in ("call", "callBoxed", "redispatch", "redispatchBoxed") else None
    if found is None:
        return None
    overload = f".{found.group(2)}" if found.group(2) else ""
    return f"{found.group(1)}{overload}" if found.group(1) else " ".join(receiver[found.start() :].split())


def is_harmless(name: str) -> bool:
    """Whether a called name, not found in the source, is known to start no device work."""
    return bool(_HARMLESS.fullmatch(name))


def is_harmless_type(type_text: str) -> bool:
    """Whether the methods of a type that is not in the source are known to start no work that a walk is about."""
    return bool(_HARMLESS_TYPE.match(type_text))


def is_tensor_work(method: str) -> bool:
    """Whether a method of a tensor does device work of its own."""
    return method in _TENSOR_METHODS


def is_library_type(type_text: str) -> bool:
    """Whether a variable's type names a library's device adapter (a CUTLASS GEMM and its like)."""
    return bool(
        re.search(
            r"\bcutlass\b|\bcute\b|\bcub::|GemmUniversal|\bGemm\w*\b|\bthrust::|\bCollective\w*\b|DeviceGemm", type_text
        )
    )
