// Fibers: stacks that take turns. On x86-64 a turn costs a dozen instructions; elsewhere the C library's contexts serve.
#pragma once

#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace cuda_on_cpu {

constexpr size_t kStackSize = 128 * 1024;
constexpr size_t kPage = 4096;

#if defined(__x86_64__)
// Keeps the registers that a call must keep on the old stack, and takes up those that lie on the new one.
extern "C" void cuda_on_cpu_switch(void** old_stack, void* new_stack);
asm(R"(
.text
.type cuda_on_cpu_switch, @function
cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_cpu_switch, .-cuda_on_cpu_switch
)");

class Stack {
 public:
  // Takes a stack of kStackSize bytes that begins to run at `entry` when first switched to.
  void begin(char* memory, void (*entry)()) {
    void** top = reinterpret_cast<void**>(memory + kStackSize);
    top[-1] = nullptr;  // where `entry` would return to; it never does
    top[-2] = reinterpret_cast<void*>(entry);
    for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
    pointer_ = top - 8;
  }
  static void change(Stack& from, Stack& to) { cuda_on_cpu_switch(&from.pointer_, to.pointer_); }

 private:
  void* pointer_ = nullptr;
};
#else
class Stack {
 public:
  void begin(char* memory, void (*entry)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = memory;
    context_.uc_stack.ss_size = kStackSize;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
  }
  static void change(Stack& from, Stack& to) { swapcontext(&from.context_, &to.context_); }

 private:
  ucontext_t context_;
};
#endif

// Memory for stacks, kept from block to block; a page below each one may not be touched, so that an overflow stops.
class StackMemory {
 public:
  char* at(size_t i) {
    while (stacks_.size() <= i) {
      void* got = mmap(nullptr, kStackSize + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (got == MAP_FAILED) throw std::runtime_error("no memory for the stacks of a block's threads");
      mprotect(got, kPage, PROT_NONE);
      stacks_.push_back(static_cast<char*>(got) + kPage);
    }
    return stacks_[i];
  }
  ~StackMemory() {
    for (char* stack : stacks_) munmap(stack - kPage, kStackSize + kPage);
  }

 private:
  std::vector<char*> stacks_;
};

}  // namespace cuda_on_cpu
