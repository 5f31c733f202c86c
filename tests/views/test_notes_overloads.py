"""Kernels of one name in a note: each apart, with the launches that start it; a static local says whose it is."""

from __future__ import annotations

from opwalker.views.notes.note import note_of
from tests.views.miniatures import walk_of
from tests.views.notes_text import section

TEXT = """template <typename T, int W> __global__ std::enable_if_t<(W > 1)> fold_kernel(T* x) {}
template <typename T, int W> __global__ std::enable_if_t<(W == 1)> fold_kernel(T* x) {}
__global__ void other_kernel(float* x) {}
inline bool is_plain() {
  static bool asked = std::getenv("PLAIN") != nullptr;
  return asked;
}
void fold(torch::Tensor& x) {
  if (x.size(0) % 4 == 0 && !is_plain()) {
    fold_kernel<float, 4><<<8, 32>>>(x.data_ptr<float>());
    fold_kernel<int, 2><<<8, 32>>>(x.data_ptr<int>());
  } else {
    fold_kernel<float, 1><<<8, 32>>>(x.data_ptr<float>());
  }
  other_kernel<<<8, 32>>>(x.data_ptr<float>());
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""


def test_kernels_of_one_name_say_which_launches_start_them() -> None:
    note = note_of(walk_of(TEXT, "ns::fold"), "cuda")
    kernels = [one for one in note.sections if one.id.startswith("kernel-")]
    assert [one.title for one in kernels] == [
        "Kernel fold_kernel, 1 of 2", "Kernel fold_kernel, 2 of 2", "Kernel other_kernel",
    ]  # fmt: skip
    started = [[text for text in section(note, one.id) if "start it" in text] for one in kernels]
    assert started == [
        ["Of the launches those with `<float, 4>` and `<int, 2>` start it: 2 instances."],
        ["Of the launches those with `<float, 1>` start it: 1 instance."],
        [],
    ]


def test_a_static_local_says_whose_it_is() -> None:
    said = section(note_of(walk_of(TEXT, "ns::fold"), "cuda"), "ownership")
    assert "`asked` (`static bool`) of `is_plain` keeps its value from call to call." in said


TRAITS = """template <typename T> struct packs { static constexpr bool exists = false; };
template <> struct packs<float> { static constexpr bool exists = true; };
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <> struct packs<int> { static constexpr bool exists = true; };
#endif
template <typename T> __global__ std::enable_if_t<packs<T>::exists> fold_kernel(T* x) {}
template <typename T> __global__ std::enable_if_t<!packs<T>::exists> fold_kernel(T* x) {}
void fold(torch::Tensor& x) {
  fold_kernel<float><<<8, 32>>>(x.data_ptr<float>());
  fold_kernel<short><<<8, 32>>>(x.data_ptr<short>());
}
TORCH_LIBRARY(ns, m) { m.impl("fold", torch::kCUDA, &fold); }
"""


def test_which_of_two_kernels_a_trait_chooses_may_hang_on_the_architecture() -> None:
    note = note_of(walk_of(TRAITS, "ns::fold"), "cuda")
    kernels = [one for one in note.sections if one.id.startswith("kernel-")]
    assert [text for one in kernels for text in section(note, one.id) if "start it" in text] == [
        f"Of the launches those with `<{kind}>` start it: 1 instance, unless its head's condition comes out otherwise "
        "for an architecture."
        for kind in ("float", "short")
    ]
