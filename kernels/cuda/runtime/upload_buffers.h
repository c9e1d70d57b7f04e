// Upload buffers with a stream of their own: blocks come to the GPU while it works on earlier ones.
//
// Three waits make it right, each by an event: a block is copied when the place it goes to is no
// longer read; it is read when it has arrived; the host writes the next one when its copy is done.
// So the GPU's copy engine is at most one block ahead of the work, and the host at most two. Blocks
// lie in kPlaces places in turn: what was recorded for one of them finds every other block.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels::cuda {

class Device;

// Errors: there is too little memory. Belongs to the device's thread; never captured.
Result<std::unique_ptr<UploadBuffers>> make_upload_buffers(Device& device, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
