"""Every small case of the reference kernels in one process, for compute-sanitizer to watch; no profiler beside it.

    compute-sanitizer --tool memcheck --error-exitcode 9 python -m tests.gpu.sanitize [OP …]

Exit code 1 where a contract is refuted, 9 where the tool reports something.
"""

from __future__ import annotations

import sys
from pathlib import Path

from opwalker import resources
from opwalker.source.cache import cache_root
from opwalker.views.verify import build
from opwalker.views.verify.contract import load, ops_in
from opwalker.views.verify.plan import NAMESPACE
from opwalker.views.verify.trial import Trial, run


def main(ops: list[str]) -> int:
    """Runs the cases; the number of those that were refuted decides the exit code."""
    from opwalker.views.verify.on_gpu import GpuOp, device
    from opwalker.views.verify.ranks_on_gpu import GpuRanks

    folder = resources.folder("reference_kernels")
    chosen = ops or list(ops_in(folder))
    toolchain = build.nvcc((device().compute_capability or "9.0",))
    refuted = done = 0
    for built in build.build(folder, [build.Wanted(op) for op in chosen], toolchain, cache_root(), 16):
        op = built.wanted.op
        if built.library is None:
            print(f"{op}: {built.error}")
            refuted += 1
            continue
        contract = load(Path(folder), op)
        # The tools watch one device: ranks share it.
        libraries, names = (str(built.library),), (f"{NAMESPACE}::{op}",)
        called = (
            GpuRanks(libraries, names, fewest=1, profiled=False)
            if contract.collective
            else GpuOp(libraries, names, profiled=False)
        )
        for number, case in enumerate(contract.cases):
            for place, dtype in enumerate(case.dtypes if not case.large else ()):
                outcome = run(contract, called, Trial(number, dtype, 1000 * number + place))
                done += 1
                reasons = [outcome.refused] if outcome.refused else list(outcome.reasons)
                if reasons:
                    refuted += 1
                    print(f"{op} {case.name} [{dtype}]: {reasons}")
    print(f"{done} cases of {len(chosen)} ops, {refuted} refuted")
    return 1 if refuted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
