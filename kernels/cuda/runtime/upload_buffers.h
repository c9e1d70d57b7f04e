// Upload buffers with a separate stream: blocks reach the GPU while it works on earlier blocks.
//
// Three waits, each by an event, make it correct: a block is copied when its place is no longer
// read; it is read when it has arrived; the host writes the next block when a place's copy is done.
// So the GPU's copy engine is at most one block ahead of the work, and the host at most two. Blocks
// take kPlaces places in turn, so a graph recorded for one place finds every other block.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels::cuda {

class Device;

// Errors: not enough memory. Belongs to the device's thread; never captured.
Result<std::unique_ptr<UploadBuffers>> make_upload_buffers(Device& device, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
