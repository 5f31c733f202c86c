// torch's stable ABI as far as the kernels use it, over plain memory, and the door through which Python calls an op.
#pragma once

namespace cuda_on_cpu {

// A tensor as it crosses the border to Python: the layout of both structures is repeated in opwalker's emulation module.
struct TensorDescription {
  void* data;
  int64_t dims;
  const int64_t* sizes;
  const int64_t* strides;
  int32_t scalar_type;
  int32_t on_host;
};

struct Value {
  enum Kind : int32_t { kNone, kTensor, kInteger, kReal, kText, kIntegers } kind;
  int64_t integer;  // of kIntegers: how many
  double real;
  const void* pointer;
};

template <typename... Part>
std::string text_of(const Part&... part) {
  std::ostringstream text;
  (text << ... << part);
  return text.str();
}

}  // namespace cuda_on_cpu

#define STD_TORCH_CHECK(CONDITION, ...) \
  if (!(CONDITION)) throw std::runtime_error(::cuda_on_cpu::text_of(__VA_ARGS__))
#define TORCH_ERROR_CODE_CHECK(CALL) STD_TORCH_CHECK((CALL) == 0, #CALL, " failed")

inline int aoti_torch_get_current_cuda_stream(int32_t, void** stream) {
  *stream = nullptr;
  return 0;
}

namespace torch::headeronly {

// The numbers are torch's own.
enum class ScalarType : int8_t {
  Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7, Bool = 11, BFloat16 = 15,
  Float8_e5m2 = 23, Float8_e4m3fn = 24
};

inline size_t element_size(ScalarType type) {
  switch (type) {
    case ScalarType::Short:
    case ScalarType::Half:
    case ScalarType::BFloat16:
      return 2;
    case ScalarType::Int:
    case ScalarType::Float:
      return 4;
    case ScalarType::Long:
    case ScalarType::Double:
      return 8;
    default:
      return 1;
  }
}

class IntHeaderOnlyArrayRef {
 public:
  IntHeaderOnlyArrayRef(const int64_t* data, size_t size) : data_(data), size_(size) {}
  IntHeaderOnlyArrayRef(const std::vector<int64_t>& all) : data_(all.data()), size_(all.size()) {}
  IntHeaderOnlyArrayRef(std::initializer_list<int64_t> all) : data_(all.begin()), size_(all.size()) {}
  const int64_t* begin() const { return data_; }
  const int64_t* end() const { return data_ + size_; }
  const int64_t* data() const { return data_; }
  size_t size() const { return size_; }
  int64_t operator[](size_t i) const { return data_[i]; }

 private:
  const int64_t* data_;
  size_t size_;
};

}  // namespace torch::headeronly

namespace torch::stable {

using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;

class Tensor {
 public:
  // Of memory that Python owns.
  explicit Tensor(const cuda_on_cpu::TensorDescription& of)
      : data_(of.data, [](void*) {}),
        sizes_(of.sizes, of.sizes + of.dims),
        strides_(of.strides, of.strides + of.dims),
        type_(static_cast<ScalarType>(of.scalar_type)),
        on_host_(of.on_host != 0) {}

  // New and contiguous, filled with the poison.
  Tensor(IntHeaderOnlyArrayRef sizes, ScalarType type) : sizes_(sizes.begin(), sizes.end()), type_(type) {
    strides_.resize(sizes_.size());
    int64_t stride = 1;
    for (size_t d = sizes_.size(); d-- > 0; stride *= std::max<int64_t>(sizes_[d], 1)) strides_[d] = stride;
    const size_t bytes = numel() * element_size() + 16;
    data_ = std::shared_ptr<void>(std::aligned_alloc(256, (bytes + 255) / 256 * 256), std::free);
    std::memset(data_.get(), 0xff, bytes);
  }

  void* data_ptr() const { return data_.get(); }
  template <typename T>
  T* mutable_data_ptr() const { return static_cast<T*>(data_.get()); }
  template <typename T>
  const T* const_data_ptr() const { return static_cast<const T*>(data_.get()); }
  int64_t dim() const { return sizes_.size(); }
  int64_t size(int64_t d) const { return sizes_.at(d < 0 ? d + dim() : d); }
  int64_t stride(int64_t d) const { return strides_.at(d < 0 ? d + dim() : d); }
  IntHeaderOnlyArrayRef sizes() const { return sizes_; }
  IntHeaderOnlyArrayRef strides() const { return strides_; }
  ScalarType scalar_type() const { return type_; }
  size_t element_size() const { return torch::headeronly::element_size(type_); }
  int32_t get_device_index() const { return on_host_ ? -1 : 0; }
  bool is_cuda() const { return !on_host_; }
  bool is_cpu() const { return on_host_; }
  int64_t numel() const {
    int64_t all = 1;
    for (const int64_t size : sizes_) all *= size;
    return all;
  }
  bool is_contiguous() const {
    int64_t stride = 1;
    for (size_t d = sizes_.size(); d-- > 0;) {
      if (numel() != 0 && sizes_[d] != 1 && strides_[d] != stride) return false;
      stride *= sizes_[d];
    }
    return true;
  }

 private:
  std::shared_ptr<void> data_;
  std::vector<int64_t> sizes_, strides_;
  ScalarType type_;
  bool on_host_ = false;
};

inline Tensor new_empty(const Tensor& like, IntHeaderOnlyArrayRef sizes, std::optional<ScalarType> type = std::nullopt) {
  return Tensor(sizes, type.value_or(like.scalar_type()));
}

inline Tensor empty(IntHeaderOnlyArrayRef sizes, std::optional<ScalarType> type = std::nullopt) {
  return Tensor(sizes, type.value_or(ScalarType::Float));
}

namespace accelerator {
struct DeviceGuard {
  explicit DeviceGuard(int32_t) {}
};
}  // namespace accelerator

}  // namespace torch::stable

namespace cuda_on_cpu {

using torch::stable::Tensor;

template <typename T>
struct As;
template <>
struct As<Tensor> {
  static Tensor from(const Value& v) { return Tensor(*static_cast<const TensorDescription*>(v.pointer)); }
};
template <>
struct As<int64_t> {
  static int64_t from(const Value& v) { return v.integer; }
};
template <>
struct As<bool> {
  static bool from(const Value& v) { return v.integer != 0; }
};
template <>
struct As<double> {
  static double from(const Value& v) { return v.real; }
};
template <>
struct As<std::string> {
  static std::string from(const Value& v) { return static_cast<const char*>(v.pointer); }
};
template <>
struct As<std::vector<int64_t>> {
  static std::vector<int64_t> from(const Value& v) {
    const auto* first = static_cast<const int64_t*>(v.pointer);
    return std::vector<int64_t>(first, first + v.integer);
  }
};
template <typename T>
struct As<std::optional<T>> {
  static std::optional<T> from(const Value& v) {
    if (v.kind == Value::kNone) return std::nullopt;
    return As<T>::from(v);
  }
};

// What a function returns, as tensors: a number is one without dimensions.
inline void give(std::vector<Tensor>& returned, const Tensor& value) { returned.push_back(value); }
inline void give(std::vector<Tensor>& returned, int64_t value) {
  returned.push_back(Tensor({}, torch::headeronly::ScalarType::Long));
  std::memcpy(returned.back().data_ptr(), &value, sizeof(value));
}
template <typename... Part>
void give(std::vector<Tensor>& returned, const std::tuple<Part...>& values) {
  std::apply([&](const auto&... each) { (give(returned, each), ...); }, values);
}

using Call = void (*)(const Value* arguments, std::vector<Tensor>& returned);

template <auto kFunction>
struct Boxed;
template <typename Result, typename... P, Result (*kFunction)(P...)>
struct Boxed<kFunction> {
  static void call(const Value* arguments, std::vector<Tensor>& returned) {
    call_with(arguments, returned, std::index_sequence_for<P...>());
  }
  static constexpr size_t kArguments = sizeof...(P);

 private:
  template <size_t... I>
  static void call_with(const Value* arguments, std::vector<Tensor>& returned, std::index_sequence<I...>) {
    std::tuple<std::decay_t<P>...> values(As<std::decay_t<P>>::from(arguments[I])...);
    if constexpr (std::is_void_v<Result>) {
      std::apply(kFunction, values);
    } else {
      give(returned, std::apply(kFunction, values));
    }
  }
};

struct Registered {
  Call call;
  size_t arguments;
};

inline std::map<std::string, Registered>& registered() {
  static std::map<std::string, Registered> all;
  return all;
}

// Of the implementations for several dispatch keys the one for CUDA is called, else that for another key, not for Meta.
struct Library {
  std::string key;

  void def(const char*) {}
  void impl(const char* name, Registered op) {
    if (key == "CUDA") registered()[name] = op;
    if (key != "Meta") registered().emplace(name, op);
  }
};

struct Registration {
  Registration(void (*fill)(Library&), const char* key) {
    Library library{key};
    fill(library);
  }
};

inline std::vector<Tensor>& kept() {
  static thread_local std::vector<Tensor> all;
  return all;
}

}  // namespace cuda_on_cpu

#define TORCH_BOX(FUNCTION) \
  ::cuda_on_cpu::Registered{&::cuda_on_cpu::Boxed<(FUNCTION)>::call, ::cuda_on_cpu::Boxed<(FUNCTION)>::kArguments}
#define CUDA_ON_CPU_REGISTRATION(NAME, KEY, LIBRARY)                        \
  static void NAME(::cuda_on_cpu::Library&);                                \
  static const ::cuda_on_cpu::Registration NAME##_registration(&NAME, KEY); \
  static void NAME(::cuda_on_cpu::Library& LIBRARY)
#define STABLE_TORCH_LIBRARY_FRAGMENT(NAMESPACE, LIBRARY) \
  CUDA_ON_CPU_REGISTRATION(cuda_on_cpu_fragment_##NAMESPACE, "", LIBRARY)
#define STABLE_TORCH_LIBRARY_IMPL(NAMESPACE, KEY, LIBRARY) \
  CUDA_ON_CPU_REGISTRATION(cuda_on_cpu_impl_##NAMESPACE##_##KEY, #KEY, LIBRARY)

// Calls an op. 0: done, and `returned` describes what came back until the next call; 1: `said` holds the error. `kernels`
// gets the names of the kernels launched, one a line.
extern "C" inline __attribute__((used, visibility("default"))) int cuda_on_cpu_call(
    const char* name, const cuda_on_cpu::Value* arguments, int64_t count, uint64_t seed,
    cuda_on_cpu::TensorDescription* returned, int64_t* returned_count, char* said, char* kernels, int64_t room) {
  using namespace cuda_on_cpu;
  const auto put = [room](char* to, const std::string& text) {
    const size_t length = std::min<size_t>(text.size(), room - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
  };
  launched.clear();
  block.seed(seed);
  kept().clear();
  int code = 0;
  try {
    const auto found = registered().find(name);
    if (found == registered().end()) throw std::runtime_error(text_of("no op is called ", name));
    if (found->second.arguments != static_cast<size_t>(count)) {
      throw std::runtime_error(text_of(name, " takes ", found->second.arguments, " arguments, not ", count));
    }
    found->second.call(arguments, kept());
  } catch (const std::exception& error) {
    put(said, error.what());
    code = 1;
  }
  *returned_count = static_cast<int64_t>(kept().size());
  for (size_t i = 0; i < kept().size(); ++i) {
    const Tensor& t = kept()[i];
    returned[i] = {t.data_ptr(), t.dim(), t.sizes().data(), t.strides().data(), static_cast<int32_t>(t.scalar_type()), t.is_cpu()};
  }
  put(kernels, launched);
  return code;
}
