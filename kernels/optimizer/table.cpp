#include "kernels/optimizer/table.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/errors.h"

namespace fettle::kernels::cuda {
namespace {

template <class T>
Result<std::unique_ptr<Memory>> to_device(Device& device, const std::vector<T>& from) {
  const auto bytes = static_cast<std::int64_t>(from.size() * sizeof(T));
  FETTLE_ASSIGN(std::unique_ptr<Memory> memory, device.allocate(bytes));
  must_succeed(cudaMemcpyAsync(memory->data(), from.data(), static_cast<std::size_t>(bytes),
                               cudaMemcpyHostToDevice, device.stream()));
  must_succeed(cudaStreamSynchronize(device.stream()));  // `from` may end with the caller
  return memory;
}

bool is_aligned(const void* address, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

// Four floats are 16 bytes, four rounded numbers 8. nullptr, an array that is absent, is aligned.
bool is_packed(const UpdateBuffers& b) {
  return is_aligned(b.weights, 16) && is_aligned(b.gradient, 16) && is_aligned(b.state1, 16) &&
         is_aligned(b.state2, 16) && is_aligned(b.rounded, 8);
}

}  // namespace

Result<UpdateTable> UpdateTable::create(Device& device, const std::vector<UpdateBuffers>& parts) {
  std::vector<UpdatePart> table;
  std::vector<UpdateChunk> chunks;
  for (const UpdateBuffers& part : parts) {
    const auto first = static_cast<std::int32_t>(chunks.size());
    for (std::int64_t begin = 0; begin < part.count; begin += kChunk) {
      const std::int64_t count = std::min(kChunk, part.count - begin);
      chunks.push_back(
          {begin, static_cast<std::int32_t>(table.size()), static_cast<std::int32_t>(count)});
    }
    CHECK(chunks.size() < std::numeric_limits<std::int32_t>::max(), "more weights than any memory");
    table.push_back(
        {part, is_packed(part), first, static_cast<std::int32_t>(chunks.size()) - first});
  }
  UpdateTable made;
  FETTLE_ASSIGN(made.parts_, to_device(device, table));
  FETTLE_ASSIGN(made.chunks_, to_device(device, chunks));
  made.view_ = {static_cast<const UpdatePart*>(made.parts_->data()),
                static_cast<const UpdateChunk*>(made.chunks_->data()),
                static_cast<std::int32_t>(table.size()), static_cast<std::int32_t>(chunks.size())};
  return made;
}

}  // namespace fettle::kernels::cuda
