"""Results written by hand for the forms to show: a made-up op of a made-up library, with everything that can occur."""

from __future__ import annotations

from msgspec.structs import replace

from opwalker.indexing import IndexReport
from opwalker.model.clang import ClangEdge, ClangReport, UnitReport
from opwalker.model.source import Problem
from opwalker.model.walk import (
    Argument,
    BarrierFact,
    CheckFact,
    ConstexprFact,
    ContiguousFact,
    Dispatch,
    Entry,
    Gap,
    GuardFact,
    Host,
    HostRef,
    Implementation,
    Kernel,
    KernelEntry,
    KernelsResult,
    Launch,
    Op,
    OpDef,
    OpImpl,
    OpsResult,
    Ownership,
    ParameterFact,
    PathStep,
    PatternRef,
    PlaceFact,
    PythonRef,
    Returned,
    SizeFact,
    SourceInfo,
    Span,
    StreamFact,
    SyncPoint,
    Terminal,
    TextFact,
    Walk,
)

SOURCE = SourceInfo("rowkit", "1.4.0")
CU = "csrc/rows/scatter_rows.cu"
BINDINGS = "csrc/rows/bindings.cpp"
CPU = "csrc/cpu/scatter_rows_cpu.cpp"

SCATTER = Op(
    name="rowkit::scatter_rows",
    kind="torch_library",
    schema=(
        "scatter_rows(Tensor rows, Tensor! pool, Tensor(a!) page_counts, Tensor slots, "
        'str mode="overwrite", *, float? scale=None) -> ()'
    ),
    arguments=(
        Argument("rows", "Tensor"),
        Argument("pool", "Tensor", mutated=True),
        Argument("page_counts", "Tensor", mutated=True, alias="a!"),
        Argument("slots", "Tensor"),
        Argument("mode", "str", default='"overwrite"'),
        Argument("scale", "float", optional=True, default="None", kwarg_only=True),
    ),
    tags=("pt2_compliant_tag",),
    defs=(
        OpDef(BINDINGS, 31, None, ("cuda", "rocm"), "_rows"),
        OpDef("csrc/cpu/bindings_cpu.cpp", 12, "!defined(ROWKIT_GPU)", ("cpu",), "_rows"),
    ),
    impls=(
        OpImpl("CPU", "scatter_rows_cpu", "csrc/cpu/bindings_cpu.cpp", 20, None, HostRef(CPU, 8, 40), ("cpu",)),
        OpImpl("CUDA", "scatter_rows", BINDINGS, 58, None, HostRef(CU, 96, 131), ("cuda", "rocm")),
        OpImpl("CUDA", "scatter_rows_wide", BINDINGS, 61, "defined(ROWKIT_WIDE)", None, ("cuda",)),
    ),
    fake=(PythonRef("rowkit/fakes.py", 44, "scatter_rows_fake"),),
    python=(PythonRef("rowkit/ops.py", 118, "scatter_rows", "torch.ops.rowkit.scatter_rows", 0),),
)

ROW_MAX = Op(
    name="rowkit::row_max",
    kind="torch_library",
    schema="row_max(Tensor rows) -> (Tensor values, Tensor indices)",
    arguments=(Argument("rows", "Tensor"),),
    returns=(Returned("Tensor", "values"), Returned("Tensor", "indices")),
    defs=(OpDef(BINDINGS, 40),),
    impls=(OpImpl("CUDA", "row_max", BINDINGS, 66, None, HostRef("csrc/rows/row_max.cu", 52, 90)),),
)

OPEN_RING = Op(
    name="rowkit._ring.Ring.open",
    kind="pybind11",
    schema=None,
    signature="int64_t Ring::open(const std::string& path, bool create)",
    defs=(OpDef("csrc/ring/module.cpp", 17),),
    impls=(OpImpl(None, "Ring::open", "csrc/ring/module.cpp", 17, None, HostRef("csrc/ring/ring.cpp", 22, 51)),),
)

CUDA = Implementation(
    key="CUDA",
    certainty="proved",
    registered_at=Span(BINDINGS, 58, 58),
    builds=("cuda", "rocm"),
    host=Host(
        name="scatter_rows",
        file=CU,
        line=96,
        end_line=131,
        parameters=(
            ParameterFact(
                "rows",
                "const torch::stable::Tensor&",
                "rows",
                ("num_rows", "row_size"),
                "[num_rows, row_size]",
                Span(CU, 97, 97),
            ),
            ParameterFact(
                "pool",
                "torch::stable::Tensor&",
                "pool",
                ("num_pages", "page_size / vec", "row_size", "vec"),
                "[num_pages, page_size / vec, row_size, vec]",
                Span(CU, 98, 99),
            ),
            ParameterFact("page_counts", "torch::stable::Tensor&", "page_counts"),
            ParameterFact(
                "slots", "const torch::stable::Tensor&", "slots", ("num_rows",), "[num_rows]", Span(CU, 101, 101)
            ),
            ParameterFact("mode", "const std::string&", "mode"),
            ParameterFact("scale", "std::optional<double>", "scale"),
        ),
        sizes=(
            SizeFact("num_rows", "slots.size(0)", "int", True, 104),
            SizeFact("row_size", "rows.size(1)", "int64_t", False, 105),
        ),
        strides=(SizeFact("row_stride", "rows.stride(0)", "int64_t", False, 106),),
        checks=(
            CheckFact("STD_TORCH_CHECK", "rows.dim() == 2", "scatter_rows takes a matrix", 108),
            CheckFact("STD_TORCH_CHECK", "pool.is_contiguous()", None, 109),
        ),
        guards=(GuardFact("torch::stable::accelerator::DeviceGuard", "rows.get_device_index()", 111),),
        streams=(StreamFact("rowkit::current_stream()", 112),),
        contiguous_calls=(ContiguousFact("slots", 113),),
    ),
    dispatch=(
        Dispatch(
            "ROWKIT_DISPATCH_PAIR",
            CU,
            127,
            "rows.scalar_type()",
            "row_t, pool_t",
            ("float, float", "c10::Half, c10::Half", "c10::BFloat16, uint8_t"),
            Span("csrc/common/dispatch.h", 19, 34),
        ),
    ),
    launches=(
        Launch(
            kernel="rowkit::scatter_rows_kernel",
            file=CU,
            line=84,
            style="macro:triple_chevron",
            grid="dim3 grid(num_rows)",
            block="dim3 block(std::min(row_size, 512))",
            shared="0",
            stream="stream",
            template_arguments=("row_t", "pool_t", "VEC"),
            instances=("float, float, 4", "c10::Half, c10::Half, 8", "c10::BFloat16, unsigned char, 8"),
            complete=True,
            path=(PathStep("scatter_rows", CU, 127), PathStep("rowkit::launch_scatter", CU, 84)),
            certainty="matched",
            used_at=Span(CU, 127, 129),
            macros=("ROWKIT_DISPATCH_PAIR", "LAUNCH_SCATTER"),
        ),
        Launch(
            kernel="rowkit::count_pages_kernel",
            file=CU,
            line=130,
            style="triple_chevron",
            grid="1",
            block="256",
            shared="256 * sizeof(int)",
            stream="stream",
            path=(PathStep("scatter_rows", CU, 130),),
            certainty="matched",
            condition="!defined(USE_ROCM)",
        ),
    ),
    kernels=(
        Kernel(
            name="rowkit::scatter_rows_kernel",
            file=CU,
            line=22,
            end_line=61,
            template_parameters=("typename row_t", "typename pool_t", "int VEC"),
            parameters=(
                ParameterFact(
                    "rows",
                    "const row_t* __restrict__",
                    None,
                    ("num_rows", "row_size"),
                    "[num_rows, row_size]",
                    Span(CU, 24, 24),
                ),
                ParameterFact("pool", "pool_t* __restrict__"),
                ParameterFact(
                    "slots", "const int64_t* __restrict__", None, ("num_rows",), "[num_rows]", Span(CU, 26, 26)
                ),
                ParameterFact("row_stride", "const int64_t"),
            ),
            launch_bounds="512",
            if_constexpr=(ConstexprFact("VEC == 8", 41),),
            vector_accesses=(TextFact("reinterpret_cast<const float4*>(rows + at)", 45),),
            device_functions=("rowkit::store_converted",),
        ),
        Kernel(
            name="rowkit::count_pages_kernel",
            file=CU,
            line=64,
            end_line=79,
            parameters=(ParameterFact("counts", "int* __restrict__"),),
            shared_memory=("extern int seen[]",),
            barriers=(BarrierFact("__syncthreads()", 70),),
            atomics=(TextFact("atomicAdd(&counts[page], 1)", 74),),
            inline_asm=(TextFact('asm volatile("st.global.cg.s32 [%0], %1;"\n      :: "l"(p), "r"(v))', 77),),
        ),
    ),
    terminals=(Terminal("memory", "cudaMemsetAsync", CU, 116, (PathStep("scatter_rows", CU, 116),)),),
)

WIDE = Implementation(
    key="CUDA",
    certainty="possible",
    host=None,
    builds=("cuda",),
    condition="defined(ROWKIT_WIDE)",
    registered_at=Span(BINDINGS, 61, 61),
)

ON_CPU = Implementation(
    key="CPU",
    certainty="proved",
    registered_at=Span("csrc/cpu/bindings_cpu.cpp", 20, 20),
    builds=("cpu",),
    host=Host("scatter_rows_cpu", CPU, 8, 40, signature="void scatter_rows_cpu(at::Tensor rows, at::Tensor& pool)"),
    terminals=(Terminal("host", "scatter_rows_cpu", CPU, 8),),
)

#: The CPU implementation stands first, as an index may well have it: a page for the CUDA build turns them round.
WALK = Walk(
    source=SOURCE,
    op=SCATTER,
    python=(
        PythonRef("rowkit/ops.py", 118, "scatter_rows", "torch.ops.rowkit.scatter_rows", 0),
        PythonRef("rowkit/layers/paged.py", 71, "PagedRows.write", "ops.scatter_rows", 1),
    ),
    implementations=(ON_CPU, CUDA, WIDE),
    ownership=Ownership(
        guards=(PlaceFact("DeviceGuard of rows.get_device_index()", CU, 111),),
        allocations=(PlaceFact("torch::stable::empty_like(slots)", CU, 114),),
    ),
    synchronisation=(SyncPoint("barrier", "__syncthreads()", "seen", CU, 70),),
    patterns=(PatternRef("dispatch-macro", CU, 127),),
    reference_kernel="scatter_rows",
    gaps=(
        Gap(
            "host",
            Span(BINDINGS, 61, 61),
            "scatter_rows_wide is declared in csrc/rows/wide.h:9, and no file here defines it",
        ),
        Gap("launch", None, "the launcher of rowkit_wide comes from another package"),
    ),
    notes=("scatter_rows_wide is registered only where ROWKIT_WIDE is set",),
)

CLANG_WALK = replace(
    WALK,
    clang=ClangReport(
        clang="clang version 18.1.1",
        torch=None,
        cuda="13.0",
        units=(
            UnitReport(BINDINGS, "CMakeLists.txt", 2.36, 2, ("torch/library.h",), (f"{BINDINGS}:3: unknown type",)),
            UnitReport(CU, "build/compile_commands.json", 1.5),
            UnitReport(CPU, None, 0.0, unread="not read within 240 seconds"),
        ),
        edges=(
            ClangEdge("registration", "CUDA → rowkit::scatter_rows", Span(BINDINGS, 31, 31), "proved"),
            ClangEdge("dispatch", "ROWKIT_DISPATCH", Span(CU, 101, 101), "proved", "in the text of ROWKIT_LAUNCH"),
            ClangEdge(
                "call", "rowkit::scatter_rows → rowkit::launch", Span(CU, 103, 103), "contradicted",
                "clang takes rowkit::wide::launch at csrc/rows/wide.cuh:12", Span("csrc/rows/wide.cuh", 12, 12),
            ),
            ClangEdge(
                "launch", "rowkit::launch → rowkit::probe", Span(CU, 88, 88), "ruled out",
                f"clang takes rowkit::scatter_rows_kernel at {CU}:22", Span(CU, 22, 22),
            ),
            ClangEdge(
                "call", "rowkit::scatter_rows → rowkit::check", Span(CU, 99, 99), "not confirmed",
                "clang cannot resolve it (read without torch/library.h)",
            ),
        ),
        proved=2, contradicted=1, ruled_out=1, not_confirmed=1,
        missing=("torch is not installed: its types are unknown, and calls that pass them are not resolved",),
    ),
)  # fmt: skip

KERNEL_WALK = Walk(
    source=SOURCE,
    op=None,
    entry=Entry("kernel", "rowkit::count_pages_kernel", CU, 64, 79),
    implementations=(Implementation(None, "matched", None, kernels=CUDA.kernels[1:], launches=CUDA.launches[1:]),),
)

OPS = OpsResult(
    source=SOURCE,
    ops=(SCATTER, ROW_MAX, OPEN_RING),
    gaps=(
        Gap(
            "registration",
            Span("csrc/old/bindings.cpp", 7, 7),
            "the namespace is the build flag ROWKIT_NS, which no build file sets",
        ),
    ),
    files_read=41,
    looked_for=("TORCH_LIBRARY", "PYBIND11_MODULE"),
)

NO_OPS = OpsResult(
    source=SourceInfo("plainpy", None, "4f1c2d9a77e0b1c3"),
    ops=(),
    files_read=210,
    looked_for=("TORCH_LIBRARY", "PYBIND11_MODULE", "torch.library"),
)

KERNELS = KernelsResult(
    source=SOURCE,
    kernels=(
        KernelEntry(
            "rowkit::scatter_rows_kernel", CU, 22, ("rowkit::scatter_rows",),
            ("float, float, 4", "c10::Half, c10::Half, 8"), True,
        ),
        KernelEntry("rowkit::count_pages_kernel", CU, 64, ("rowkit::scatter_rows",), ("",), True),
        KernelEntry(
            "rowkit::(anonymous namespace)::probe", "csrc/rows/row_max.cu", 11, (), (), False,
            "VEC: the value of pick(n) is not known", "!USE_ROCM",
        ),
    ),
)  # fmt: skip

REPORT = IndexReport(
    files=(("cpp", 12), ("cuda", 29), ("python", 1_203)),
    read=4,
    changed=1,
    reused=1_240,
    removed=2,
    problems=(
        ("csrc/rows/old.cu", Problem("encoding", "not UTF-8: read as Latin-1", 12, 3)),
        ("csrc/rows/table.inc", Problem("too-large", "212 MB, and 32 MB are read")),
    ),
    seconds=(("scan", 0.21), ("compare", 0.03), ("facts", 1.4), ("write", 0.118)),
)
