// The protocol of all_reduce between CPU threads, one a rank: the kernel as it is, with one thread for each of its blocks.
//
// Built by the emulation with a thread checker, which reports two ranks that touch the same memory with nothing in between, and
// run with a deadline, which catches ranks that wait for each other for ever. Exit code 1: a sum is wrong.

#include "common/op.cuh"

#include <atomic>
#include <thread>
#include <vector>

namespace opwalker_ref {

int64_t meta_size();
int64_t init_custom_ar(const std::vector<int64_t>& ipc_tensors, int64_t region_size, int64_t rank);
void register_buffer(int64_t fa, const std::vector<int64_t>& ipc_tensors);
void dispose(int64_t fa);
std::tuple<int64_t, Tensor> allocate_shared_buffer_and_handle(int64_t size);
void free_shared_buffer(int64_t buffer);
void all_reduce(int64_t fa, const Tensor& inp, Tensor& out, int64_t reg_buffer, int64_t reg_buffer_sz_bytes);

}  // namespace opwalker_ref

namespace {

constexpr int kRanks = 4;

// Rounds of one size, without a pause between them.
struct Rounds {
  int64_t elements;
  int count;
};
constexpr Rounds kSizes[] = {{40, 12}, {5000, 3}, {140000, 2}};  // one stage, several blocks, two stages
constexpr int64_t kLargest = 140000 * sizeof(float);

std::atomic<int> wrong{0};

float of(int rank, int round, int64_t element) { return static_cast<float>((rank + 1) * (round + 3) + element % 7); }

void run(int rank, const std::vector<int64_t>& regions, const std::vector<int64_t>& buffers) {
  using namespace opwalker_ref;
  const int64_t communicator = init_custom_ar(regions, meta_size() + kLargest, rank);
  register_buffer(communicator, buffers);
  for (const Rounds& rounds : kSizes) {
    Tensor inp({rounds.elements}, ScalarType::Float);
    Tensor out({rounds.elements}, ScalarType::Float);
    for (int round = 0; round < rounds.count; ++round) {
      for (int64_t i = 0; i < rounds.elements; ++i) inp.mutable_data_ptr<float>()[i] = of(rank, round, i);
      all_reduce(communicator, inp, out, buffers[rank], kLargest);
      for (int64_t i = 0; i < rounds.elements; ++i) {
        float sum = 0.0f;
        for (int r = 0; r < kRanks; ++r) sum += of(r, round, i);
        if (out.const_data_ptr<float>()[i] != sum) ++wrong;
      }
    }
  }
  dispose(communicator);
}

}  // namespace

int main() {
  using namespace opwalker_ref;
  std::vector<int64_t> regions, buffers;
  for (int r = 0; r < kRanks; ++r) {
    regions.push_back(std::get<0>(allocate_shared_buffer_and_handle(meta_size() + kLargest)));
    buffers.push_back(std::get<0>(allocate_shared_buffer_and_handle(kLargest)));
  }
  std::vector<std::thread> ranks;
  for (int r = 0; r < kRanks; ++r) ranks.emplace_back(run, r, regions, buffers);
  for (std::thread& rank : ranks) rank.join();
  for (int64_t memory : regions) free_shared_buffer(memory);
  for (int64_t memory : buffers) free_shared_buffer(memory);
  if (wrong == 0) return 0;
  std::fprintf(stderr, "%d sums are wrong\n", wrong.load());
  return 1;
}
