// One block at a time: its threads as fibers, barriers over the block and over warps, shared memory, and launches.
#pragma once

#include <cxxabi.h>
#include <dlfcn.h>

namespace cuda_on_cpu {

struct Fiber {
  Stack stack;
  dim3 index{0, 0, 0};
  unsigned warp = 0, lane = 0;
  bool ended = false;
  bool at_barrier = false;
};

struct Warp {
  unsigned present = 0;       // lanes that the block has
  unsigned ended = 0;         // lanes whose thread has returned
  unsigned waiting[32] = {};  // the mask that a lane waits with; 0: it does not wait
  uint64_t slot[32] = {};     // what a lane hands to the others
};

// The block that this OS thread runs. Order of turns: a new shuffle for each block, so that code which needs a barrier and
// has none does not come out right by luck.
class Block {
 public:
  template <typename Body>
  void run(dim3 grid, dim3 at, dim3 size, size_t dynamic_bytes, const Body& body) {
    body_ = std::function<void()>(body);
    gridDim = grid;
    blockIdx = at;
    blockDim = size;
    const unsigned threads = size.x * size.y * size.z;
    fibers_.assign(threads, Fiber{});
    warps_.assign((threads + 31) / 32, Warp{});
    alive_ = threads;
    arrived_ = votes_ = 0;
    fault_.clear();
    met_.clear();
    dynamic_.assign(dynamic_bytes + 1024, static_cast<char>(0xff));
    std::vector<unsigned> order(threads);
    for (unsigned i = 0; i < threads; ++i) {
      Fiber& fiber = fibers_[i];
      fiber.index = dim3(i % size.x, i / size.x % size.y, i / size.x / size.y);
      fiber.warp = i / 32;
      fiber.lane = i % 32;
      warps_[fiber.warp].present |= 1u << fiber.lane;
      fiber.stack.begin(memory_.at(i), &Block::enter);
      order[i] = i;
    }
    for (unsigned i = threads; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    while (alive_ > 0) {
      bool any = false;
      for (const unsigned i : order) {
        Fiber& fiber = fibers_[i];
        if (fiber.ended || fiber.at_barrier || warps_[fiber.warp].waiting[fiber.lane]) continue;
        any = true;
        current_ = &fiber;
        threadIdx = fiber.index;
        Stack::change(scheduler_, fiber.stack);
        if (!fault_.empty()) throw std::runtime_error(fault_);
      }
      if (!any) throw std::runtime_error("the threads of a block wait for each other without end: a barrier, or a warp's "
                                         "operation, that only some of its threads reach");
    }
  }

  // Waits until every thread of the block that has not returned is here; how many of them brought `vote`.
  int barrier(bool vote) {
    votes_ += vote;
    ++arrived_;
    current_->at_barrier = true;
    open_barrier();
    while (current_->at_barrier) yield();
    return result_;
  }

  // Waits until every lane of `mask` is here. Lanes that the block does not have are not waited for.
  void warp_barrier(unsigned mask) {
    Warp& w = warps_[current_->warp];
    const unsigned wanted = mask & w.present;
    if (!(mask >> current_->lane & 1)) stop("a warp's operation is called by a lane that its mask leaves out");
    if (wanted & w.ended) stop("a warp's operation names a lane whose thread has returned");
    w.waiting[current_->lane] = mask;
    bool all = true;
    for (unsigned lane = 0; lane < 32; ++lane) all = all && (!(wanted >> lane & 1) || w.waiting[lane] == mask);
    if (all) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        if (wanted >> lane & 1) w.waiting[lane] = 0;
      }
    }
    while (w.waiting[current_->lane]) yield();
  }

  // A barrier of the warp with a value from each lane; `read` gets the 32 values before any lane goes on.
  template <typename Read>
  auto exchange(unsigned mask, uint64_t value, Read read) {
    Warp& w = warps_[current_->warp];
    w.slot[current_->lane] = value;
    warp_barrier(mask);
    const auto result = read(w.slot, mask & w.present);
    warp_barrier(mask);
    return result;
  }

  unsigned lane() const { return current_->lane; }

  // Lets the other threads of the block go on, while this one waits for something from outside.
  void pause() {
    if (current_ != nullptr) yield();
    sched_yield();
  }

  void* dynamic_shared() {
    const uintptr_t address = reinterpret_cast<uintptr_t>(dynamic_.data());
    return reinterpret_cast<void*>((address + 255) / 256 * 256);
  }

  // Fills a shared variable with the poison when this block meets it first.
  void meet(void* variable, size_t size) {
    if (std::find(met_.begin(), met_.end(), variable) != met_.end()) return;
    met_.push_back(variable);
    std::memset(variable, 0xff, size);
  }

  void seed(uint64_t value) { random_ = value * 2 + 1; }

 private:
  static void enter();

  [[noreturn]] void stop(const char* reason) {
    fault_ = reason;
    for (;;) yield();
  }

  void yield() {
    Fiber* self = current_;
    Stack::change(self->stack, scheduler_);
    current_ = self;
  }

  void end() {
    Fiber& self = *current_;
    self.ended = true;
    Warp& w = warps_[self.warp];
    w.ended |= 1u << self.lane;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (w.waiting[lane] >> self.lane & 1) stop("a thread returns while its warp waits for it");
    }
    --alive_;
    open_barrier();
    for (;;) yield();
  }

  void open_barrier() {
    if (arrived_ == 0 || arrived_ < alive_) return;
    result_ = votes_;
    arrived_ = votes_ = 0;
    for (Fiber& fiber : fibers_) fiber.at_barrier = false;
  }

  unsigned random() {
    random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(random_ >> 33);
  }

  std::function<void()> body_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<void*> met_;
  std::vector<char> dynamic_;
  std::string fault_;
  StackMemory memory_;
  Stack scheduler_;
  Fiber* current_ = nullptr;
  unsigned alive_ = 0, arrived_ = 0;
  int votes_ = 0, result_ = 0;
  uint64_t random_ = 1;
};

inline thread_local Block block;

inline void Block::enter() {
  block.body_();
  block.end();
}

// Names of the kernels launched since they were last asked for, as a demangler prints them, one a line.
inline thread_local std::string launched;

inline void note_launch(void* kernel) {
  Dl_info found;
  if (!dladdr(kernel, &found) || found.dli_sname == nullptr) return;
  int status = 0;
  char* readable = abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, &status);
  launched += status == 0 ? readable : found.dli_sname;
  launched += '\n';
  std::free(readable);
}

struct Configuration {
  Configuration(dim3 grid, dim3 block, size_t shared = 0, const void* = nullptr) : grid(grid), block(block), shared(shared) {}

  dim3 grid, block;
  size_t shared;
};

template <typename... P>
struct Launch {
  Configuration where;
  void (*kernel)(P...);

  void operator()(P... arguments) const {
    const dim3 size = where.block;
    const unsigned threads = size.x * size.y * size.z;
    if (threads == 0 || threads > 1024) throw std::runtime_error("launch failed: a block has 1 to 1024 threads");
    if (where.grid.x == 0 || where.grid.y == 0 || where.grid.z == 0 || where.grid.y > 65535 || where.grid.z > 65535) {
      throw std::runtime_error("launch failed: the grid is empty or too large");
    }
    note_launch(reinterpret_cast<void*>(kernel));
#ifdef CUDA_ON_CPU_ONE_THREAD
    // What is between blocks, and nothing else: for a thread checker, which knows no fibers.
    if (where.grid.y != 1 || where.grid.z != 1) throw std::runtime_error("with one thread a block, a grid is a row");
    gridDim = where.grid;
    blockDim = dim3(1);
    for (unsigned x = 0; x < where.grid.x; ++x) {
      blockIdx = dim3(x, 0, 0);
      kernel(arguments...);
    }
    return;
#endif
    for (unsigned z = 0; z < where.grid.z; ++z) {
      for (unsigned y = 0; y < where.grid.y; ++y) {
        for (unsigned x = 0; x < where.grid.x; ++x) {
          block.run(where.grid, dim3(x, y, z), size, where.shared, [&] { kernel(arguments...); });
        }
      }
    }
  }
};

template <typename... P>
Launch<P...> launch(Configuration where, void (*kernel)(P...)) {
  return {where, kernel};
}

}  // namespace cuda_on_cpu
