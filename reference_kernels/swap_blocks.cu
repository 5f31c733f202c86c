// Blocks of a cache copied from src to dst, one or both of them on the device: each row of block_mapping is (from, to).
//
// There is no kernel: the mapping lies on the host, and each block is one copy that the stream orders.

#include "common/op.cuh"

namespace opwalker_ref {

void swap_blocks(const Tensor& src,  // [num_src_blocks, ...]
                 Tensor& dst,        // [num_dst_blocks, ...]
                 int64_t block_size_in_bytes,
                 const Tensor& block_mapping) {  // [num_pairs, 2]
  STD_TORCH_CHECK(src.is_cuda() || dst.is_cuda(), "swap_blocks: src or dst must be on a device");
  STD_TORCH_CHECK(!src.is_cuda() || !dst.is_cuda() || src.get_device_index() == dst.get_device_index(),
                  "swap_blocks: src and dst are on different devices");
  STD_TORCH_CHECK(!block_mapping.is_cuda() && block_mapping.scalar_type() == ScalarType::Long,
                  "swap_blocks: block_mapping must be int64, and on the host, where it is read");
  STD_TORCH_CHECK(block_mapping.dim() == 2 && block_mapping.size(1) == 2, "swap_blocks: block_mapping must be [n, 2]");
  const cudaMemcpyKind kind = !src.is_cuda()   ? cudaMemcpyHostToDevice
                              : !dst.is_cuda() ? cudaMemcpyDeviceToHost
                                             : cudaMemcpyDeviceToDevice;

  const Tensor& on_device = src.is_cuda() ? src : dst;
  const DeviceGuard guard(on_device.get_device_index());
  const cudaStream_t stream = current_stream(on_device);
  const char* from = static_cast<const char*>(src.data_ptr());
  char* to = static_cast<char*>(dst.data_ptr());
  const int64_t* mapping = static_cast<const int64_t*>(block_mapping.data_ptr());
#ifndef OPWALKER_WRONG_MAPPING_STRIDE
  const int64_t next = block_mapping.stride(0);
#else
  const int64_t next = 2;
#endif
  for (int64_t i = 0; i < block_mapping.size(0); ++i) {
#ifndef OPWALKER_WRONG_DIRECTION
    const int64_t src_block = mapping[i * next];
    const int64_t dst_block = mapping[i * next + block_mapping.stride(1)];
#else
    const int64_t src_block = mapping[i * next + block_mapping.stride(1)];
    const int64_t dst_block = mapping[i * next];
#endif
    const cudaError_t error = cudaMemcpyAsync(to + dst_block * block_size_in_bytes, from + src_block * block_size_in_bytes,
                                              block_size_in_bytes, kind, stream);
    check_cuda(error, "swap_blocks");
  }
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("swap_blocks(Tensor src, Tensor! dst, int block_size_in_bytes, Tensor block_mapping) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("swap_blocks", TORCH_BOX(&opwalker_ref::swap_blocks));
}
