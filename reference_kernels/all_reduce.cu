// out = the sum of inp over all ranks, on every rank: GPUs read each other's memory directly, with barriers made of flags.
//
// A rank copies its input to a buffer that the others can read. Small inputs go in one stage: behind a barrier every rank reads
// every buffer and adds all of it. Larger ones go in two: each rank adds one part, and gathers the parts that others added.
// Sums are taken in the order of ranks, in float32: all ranks get the same bits.

#include "common/flag_barrier.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

#include <tuple>
#include <vector>

namespace opwalker_ref {

constexpr int kReduceThreads = 512;

// Up to here one stage is quicker: it moves more, and waits less often.
constexpr int64_t kOneStageBytes = 512 * 1024;

// What this rank can reach of every rank, in the order of ranks.
struct Peers {
  Signal* signals[kMaxRanks];  // each followed by room for the sums of a part
  void* buffers[kMaxRanks];    // inputs
};

// Made by init_custom_ar, ended by dispose.
struct Communicator {
  Peers peers;
  int rank;
  int ranks;
  int64_t room;  // bytes behind a signal
};

// What all ranks have at one place, added.
template <typename scalar_t, int kWidth>
__device__ __forceinline__ Vector<scalar_t, kWidth> sum_over_ranks(const Peers& peers, int ranks, int64_t vector) {
  Vector<scalar_t, kWidth> part[kMaxRanks];
#pragma unroll
  for (int r = 0; r < kMaxRanks; ++r) {
    if (r < ranks) part[r] = load<kWidth>(static_cast<const scalar_t*>(peers.buffers[r]) + vector * kWidth);
  }
  Vector<scalar_t, kWidth> sum;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    float of_element = 0.0f;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < ranks) of_element += to_float(part[r][i]);
    }
    sum[i] = from_float<scalar_t>(of_element);
  }
  return sum;
}

// A block handles the same vectors on every rank, so that it is enough if each block waits for itself.
template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(kReduceThreads) all_reduce_one_stage_kernel(
    scalar_t* out,        // [num_elements]
    const scalar_t* inp,  // [num_elements]
    const __grid_constant__ Peers peers, int rank, int ranks, int64_t vectors) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  auto* own = static_cast<scalar_t*>(peers.buffers[rank]);
  for (int64_t v = first; v < vectors; v += step) store<kWidth>(own + v * kWidth, load<kWidth>(inp + v * kWidth));
  barrier(peers.signals, rank, ranks, false);  // every input is there
#ifdef OPWALKER_WRONG_NO_END_BARRIER
  if (rank == 1) loiter();  // makes the mistake show
#endif
  for (int64_t v = first; v < vectors; v += step) {
    store<kWidth>(out + v * kWidth, sum_over_ranks<scalar_t, kWidth>(peers, ranks, v));
  }
#ifndef OPWALKER_WRONG_NO_END_BARRIER
  barrier(peers.signals, rank, ranks, true);  // every input has been read: the next call may overwrite it
#endif
}

// Rank r adds vectors [r * part, (r + 1) * part). Nothing is overwritten too early: the sums are written behind the next call's
// first barrier, to which every rank comes when it has gathered the last ones.
template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(kReduceThreads) all_reduce_two_stage_kernel(
    scalar_t* out,        // [num_elements]
    const scalar_t* inp,  // [num_elements]
    const __grid_constant__ Peers peers, int rank, int ranks, int64_t vectors) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t part = (vectors + ranks - 1) / ranks;
  auto* own = static_cast<scalar_t*>(peers.buffers[rank]);
  for (int r = 0; r < ranks; ++r) {
    for (int64_t v = first; v < part && r * part + v < vectors; v += step) {
      const int64_t at = (r * part + v) * kWidth;
      store<kWidth>(own + at, load<kWidth>(inp + at));
    }
  }
  barrier(peers.signals, rank, ranks, false);  // every input is there

#ifdef OPWALKER_WRONG_NO_END_BARRIER
  if (rank == 1) loiter();  // makes the mistake show
#endif
  auto* sums = reinterpret_cast<scalar_t*>(peers.signals[rank] + 1);
  for (int64_t v = first; v < part && rank * part + v < vectors; v += step) {
    store<kWidth>(sums + v * kWidth, sum_over_ranks<scalar_t, kWidth>(peers, ranks, rank * part + v));
  }
#ifndef OPWALKER_WRONG_NO_END_BARRIER
  barrier(peers.signals, rank, ranks, true);  // every sum is there, and every input has been read
#endif

  for (int r = 0; r < ranks; ++r) {
    const auto* of_rank = reinterpret_cast<const scalar_t*>(peers.signals[r] + 1);
    for (int64_t v = first; v < part && r * part + v < vectors; v += step) {
      store<kWidth>(out + (r * part + v) * kWidth, load<kWidth>(of_rank + v * kWidth));
    }
  }
}

int64_t meta_size() { return sizeof(Signal); }

// `ipc_tensors`: addresses, in the order of ranks, of `region_size` bytes each that begin as zeros: meta_size() bytes for
// flags, the rest for sums.
int64_t init_custom_ar(const std::vector<int64_t>& ipc_tensors, int64_t region_size, int64_t rank) {
  const int64_t ranks = static_cast<int64_t>(ipc_tensors.size());
  STD_TORCH_CHECK(1 < ranks && ranks <= kMaxRanks && 0 <= rank && rank < ranks, "init_custom_ar: 2 to 8 ranks");
  STD_TORCH_CHECK(region_size >= meta_size(), "init_custom_ar: a region must hold meta_size() bytes");
  auto* made = new Communicator{{}, static_cast<int>(rank), static_cast<int>(ranks), region_size - meta_size()};
  for (int64_t r = 0; r < ranks; ++r) made->peers.signals[r] = reinterpret_cast<Signal*>(ipc_tensors[r]);
  return reinterpret_cast<int64_t>(made);
}

// `ipc_tensors`: addresses of the buffers that all_reduce copies its inputs to.
void register_buffer(int64_t fa, const std::vector<int64_t>& ipc_tensors) {
  auto* communicator = reinterpret_cast<Communicator*>(fa);
  STD_TORCH_CHECK(static_cast<int>(ipc_tensors.size()) == communicator->ranks, "register_buffer: one address a rank");
  for (int r = 0; r < communicator->ranks; ++r) communicator->peers.buffers[r] = reinterpret_cast<void*>(ipc_tensors[r]);
}

void dispose(int64_t fa) { delete reinterpret_cast<Communicator*>(fa); }

// Memory on the current device, zeroed, and a handle with which another process can open it.
std::tuple<int64_t, Tensor> allocate_shared_buffer_and_handle(int64_t size) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, size), "allocate_shared_buffer_and_handle");
  check_cuda(cudaMemset(memory, 0, size), "allocate_shared_buffer_and_handle");
  check_cuda(cudaDeviceSynchronize(), "allocate_shared_buffer_and_handle");
  Tensor handle = torch::stable::empty({sizeof(cudaIpcMemHandle_t)}, ScalarType::Byte);
  check_cuda(cudaIpcGetMemHandle(static_cast<cudaIpcMemHandle_t*>(handle.data_ptr()), memory),
        "allocate_shared_buffer_and_handle");
  return {reinterpret_cast<int64_t>(memory), handle};
}

int64_t open_mem_handle(const Tensor& mem_handle) {  // [64]
  void* memory = nullptr;
  check_cuda(cudaIpcOpenMemHandle(&memory, *static_cast<const cudaIpcMemHandle_t*>(mem_handle.data_ptr()),
                             cudaIpcMemLazyEnablePeerAccess),
        "open_mem_handle");
  return reinterpret_cast<int64_t>(memory);
}

void free_shared_buffer(int64_t buffer) { check_cuda(cudaFree(reinterpret_cast<void*>(buffer)), "free_shared_buffer"); }

void all_reduce(int64_t fa,
                const Tensor& inp,  // [...]
                Tensor& out,        // [...]
                int64_t reg_buffer, int64_t reg_buffer_sz_bytes) {
  const auto& communicator = *reinterpret_cast<const Communicator*>(fa);
  const int64_t bytes = inp.numel() * inp.element_size();
  STD_TORCH_CHECK(inp.is_contiguous() && out.is_contiguous(), "all_reduce: input and output must be contiguous");
  STD_TORCH_CHECK(inp.scalar_type() == out.scalar_type() && inp.numel() == out.numel(),
                  "all_reduce: input and output differ in type or size");
  STD_TORCH_CHECK(reinterpret_cast<void*>(reg_buffer) == communicator.peers.buffers[communicator.rank],
                  "all_reduce: reg_buffer is not the buffer that was registered");
  STD_TORCH_CHECK(bytes <= reg_buffer_sz_bytes, "all_reduce: the input is larger than the registered buffer");
  STD_TORCH_CHECK(bytes <= kOneStageBytes || bytes / communicator.ranks + 16 <= communicator.room,
                  "all_reduce: a part is larger than the room for sums");
  if (inp.numel() == 0) return;

  const DeviceGuard guard(inp.get_device_index());
  const cudaStream_t stream = current_stream(inp);
  DISPATCH_FLOATING_TYPES(inp.scalar_type(), "all_reduce", [&] {
    constexpr int kFull = kFullWidth<scalar_t>;
    auto* to = static_cast<scalar_t*>(out.data_ptr());
    const auto* from = static_cast<const scalar_t*>(inp.data_ptr());
    const bool wide = inp.numel() % kFull == 0;  // the same on every rank, and with it the vectors of each block
    STD_TORCH_CHECK(!wide || aligned<kFull>(to, from), "all_reduce: input and output must be aligned to 16 bytes");
    DISPATCH_BOOL(wide, kWide, [&] {
      constexpr int kWidth = kWide ? kFull : 1;
      const int64_t vectors = inp.numel() / kWidth;
      const int64_t blocks_of_work = (vectors + kReduceThreads - 1) / kReduceThreads;
      const unsigned blocks = static_cast<unsigned>(std::min<int64_t>(blocks_of_work, kMaxBlocks));
      if (bytes <= kOneStageBytes) {
        all_reduce_one_stage_kernel<scalar_t, kWidth><<<blocks, kReduceThreads, 0, stream>>>(
            to, from, communicator.peers, communicator.rank, communicator.ranks, vectors);
        check_launch("all_reduce");
      } else {
        all_reduce_two_stage_kernel<scalar_t, kWidth><<<blocks, kReduceThreads, 0, stream>>>(
            to, from, communicator.peers, communicator.rank, communicator.ranks, vectors);
        check_launch("all_reduce");
      }
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("meta_size() -> int");
  ops.def("init_custom_ar(int[] ipc_tensors, int region_size, int rank) -> int");
  ops.def("register_buffer(int fa, int[] ipc_tensors) -> ()");
  ops.def("dispose(int fa) -> ()");
  ops.def("allocate_shared_buffer_and_handle(int size) -> (int, Tensor)");
  // opwalker: ignore[missing-fake] sets processes up, before anything is traced
  ops.def("open_mem_handle(Tensor mem_handle) -> int");
  ops.def("free_shared_buffer(int buffer) -> ()");
  ops.def("all_reduce(int fa, Tensor inp, Tensor! out, int reg_buffer, int reg_buffer_sz_bytes) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("all_reduce", TORCH_BOX(&opwalker_ref::all_reduce));
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CPU, ops) {
  ops.impl("open_mem_handle", TORCH_BOX(&opwalker_ref::open_mem_handle));
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CompositeExplicitAutograd, ops) {
  ops.impl("meta_size", TORCH_BOX(&opwalker_ref::meta_size));
  ops.impl("init_custom_ar", TORCH_BOX(&opwalker_ref::init_custom_ar));
  ops.impl("register_buffer", TORCH_BOX(&opwalker_ref::register_buffer));
  ops.impl("dispose", TORCH_BOX(&opwalker_ref::dispose));
  ops.impl("allocate_shared_buffer_and_handle", TORCH_BOX(&opwalker_ref::allocate_shared_buffer_and_handle));
  ops.impl("free_shared_buffer", TORCH_BOX(&opwalker_ref::free_shared_buffer));
}
