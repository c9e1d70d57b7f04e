// UpdateTable: the parts of an update, cut for a multi-tensor kernel into chunks of equal size,
// which are dealt to blocks regardless of their part. So one launch updates a network of any number
// of tensors, and a bias of ten numbers costs a block, not a launch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels::cuda {

class Device;

struct UpdatePart {
  UpdateBuffers buffers;
  // Whether every array begins where four numbers can be read at once (chunks preserve this).
  bool packed = false;
  std::int32_t first_chunk = 0;
  std::int32_t chunks = 0;
};

// Elements begin to begin + count of a part.
struct UpdateChunk {
  std::int64_t begin = 0;
  std::int32_t part = 0;
  std::int32_t count = 0;
};

// The kernels' view of the table: pointers into the device's memory.
struct UpdateView {
  const UpdatePart* parts = nullptr;
  const UpdateChunk* chunks = nullptr;
  std::int32_t part_count = 0;
  std::int32_t chunk_count = 0;
};

class UpdateTable {
 public:
  // A multiple of 4, so that chunks of aligned arrays are aligned. Sixteen numbers a thread: enough
  // to hide the block's look-up of its work.
  static constexpr std::int64_t kChunk = 4096;

  // Errors: not enough memory.
  static Result<UpdateTable> create(Device& device, const std::vector<UpdateBuffers>& parts);

  UpdateView view() const { return view_; }

 private:
  std::unique_ptr<Memory> parts_, chunks_;
  UpdateView view_;
};

}  // namespace fettle::kernels::cuda
