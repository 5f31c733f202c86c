"""all_reduce between processes, one a GPU, that open each other's memory by IPC handles.

    python -m tests.gpu.all_reduce [--ranks N] [--rounds 10000] [--json FILE]

Every round has another size and other numbers, some ranks come late, and nothing waits between rounds; every bit of
every result is compared with a sum in float64. Then times, beside NCCL's through torch in the same run. Exit code 1: a
result is wrong, 2: ranks wait for each other, 3: too few GPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from opwalker import resources
from opwalker.source.cache import cache_root
from opwalker.views.verify import build

#: Bytes of the largest input.
LARGEST = 32 << 20

#: Elements of a round, in bfloat16 or float32: one stage (to 512 KiB) and two, whole vectors and not.
SIZES = (1, 8, 521, 4096, 32768, 100_003, 262_144, 262_152, 400_000)

#: Bytes of an input that is timed.
TIMED = tuple(1 << power for power in range(10, 26))

#: Seconds after which ranks are taken to wait for each other.
DEADLINE = 420.0


def main(words: list[str]) -> int:
    """Runs one process for each rank and waits for all of them."""
    parser = argparse.ArgumentParser(description="all_reduce between processes, one a GPU")
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(words)
    import torch
    from torch import multiprocessing

    ranks = chosen.ranks or min(8, torch.cuda.device_count())
    if ranks < 2 or torch.cuda.device_count() < ranks:
        print(f"not run: it needs two GPUs or more, and there are {torch.cuda.device_count()}")
        return 3
    from opwalker.views.verify.on_gpu import device

    toolchain = build.nvcc((device().compute_capability or "9.0",))
    folder = resources.folder("reference_kernels")
    (built,) = build.build(folder, [build.Wanted("all_reduce")], toolchain, cache_root(), 1)
    if built.library is None:
        print(built.error)
        return 1
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers = multiprocessing.get_context("spawn").SimpleQueue()
    running = multiprocessing.start_processes(
        rank_main, (ranks, str(built.library), chosen.rounds, port, answers), ranks, join=False, start_method="spawn"
    )
    begun = time.monotonic()
    while not running.join(timeout=1.0):
        if time.monotonic() - begun > DEADLINE:
            for process in running.processes:
                process.kill()
            print(f"no end within {DEADLINE:g} s: ranks wait for each other")
            return 2
    answer = answers.get()
    if chosen.json:
        chosen.json.write_text(json.dumps(answer, indent=1), encoding="utf-8")
    print(f"{answer['rounds']} rounds on {ranks} GPUs, {answer['wrong']} elements wrong")
    for one in answer["times"]:
        print(f"{one['bytes']:>10,} bytes  {one['ours_us']:8.1f} us  NCCL {one['nccl_us']:8.1f} us")
    return 1 if answer["wrong"] else 0


def rank_main(rank: int, ranks: int, library: str, rounds: int, port: int, answers: Any) -> None:
    """One rank: memory shared, rounds compared, times taken."""
    import torch
    from torch import distributed

    torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks, timeout=timedelta(seconds=120)
    )
    by_host = distributed.new_group(backend="gloo")
    torch.ops.load_library(library)
    ops = torch.ops.opwalker_ref

    def shared(size: int) -> tuple[list[int], int]:
        """The addresses of memory of every rank, as this one sees them; and its own."""
        own, handle = ops.allocate_shared_buffer_and_handle(size)
        handles: list[Any] = [None] * ranks
        distributed.all_gather_object(handles, handle.tolist(), group=by_host)
        opened = [
            own if other == rank else ops.open_mem_handle(torch.tensor(handles[other], dtype=torch.uint8))
            for other in range(ranks)
        ]
        return opened, own

    room = ops.meta_size() + LARGEST
    regions, _ = shared(room)
    buffers, own = shared(LARGEST)
    communicator = ops.init_custom_ar(regions, room, rank)
    ops.register_buffer(communicator, buffers)

    def reduced(inp: Any) -> Any:
        out = torch.empty_like(inp)
        ops.all_reduce(communicator, inp, out, own, LARGEST)
        return out

    wrong = compare(reduced, rank, ranks, rounds)
    distributed.all_reduce(wrong)
    times = [timed(reduced, size) for size in TIMED]
    if rank == 0:
        answers.put({"ranks": ranks, "rounds": rounds, "wrong": int(wrong), "times": times})
    distributed.barrier()
    ops.dispose(communicator)
    distributed.destroy_process_group()


def compare(reduced: Any, rank: int, ranks: int, rounds: int) -> Any:
    """How many elements of all rounds have other bits than the sum in float64."""
    import torch

    same = random.Random(1)  # what all ranks agree on: sizes and types
    mine = random.Random(100 + rank)  # who comes late, and how much
    place = torch.arange(max(SIZES), device="cuda")
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    for number in range(rounds):
        count, dtype = same.choice(SIZES), same.choice((torch.bfloat16, torch.float32, torch.float16))
        # Multiples of 1/8 up to 16, which bfloat16 holds; and float32 every sum of them, whatever the order.
        of_rank = [(place[:count] * 7919 + number * 104729 + other * 15485863) % 257 - 128 for other in range(ranks)]
        inp = (of_rank[rank] / 8).to(dtype)
        if mine.random() < 0.2:
            torch.cuda._sleep(mine.randrange(400_000))
        if mine.random() < 0.01:
            time.sleep(mine.random() / 200)
        out = reduced(inp)
        right = (torch.stack(of_rank).sum(0).double() / 8).to(dtype)
        bits = torch.int32 if dtype == torch.float32 else torch.int16
        wrong += (out.view(bits) != right.view(bits)).sum()
        if number % 500 == 499:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return wrong


def timed(reduced: Any, size: int) -> dict[str, float]:
    """Microseconds of a call, one call after the other, through torch: ours and NCCL's."""
    import torch
    from torch import distributed

    inp = torch.ones(size // 2, dtype=torch.bfloat16, device="cuda")
    calls = 200 if size <= 1 << 20 else 50

    def median(call: Any) -> float:
        for _ in range(10):
            call()
        found = []
        for _ in range(7):
            torch.cuda.synchronize()
            distributed.barrier()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(calls):
                call()
            end.record()
            end.synchronize()
            found.append(begin.elapsed_time(end) * 1000 / calls)
        return statistics.median(found)

    ours = median(lambda: reduced(inp))
    zeros = torch.zeros_like(inp)  # what is added in place stays finite
    return {"bytes": size, "ours_us": ours, "nccl_us": median(lambda: distributed.all_reduce(zeros))}


if __name__ == "__main__":
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    sys.exit(main(sys.argv[1:]))
