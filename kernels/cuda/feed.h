// A feed on a stream of its own: blocks come to the GPU while it works on those before.
//
// Three orders make it right, and each is an event: a block is copied when the place it goes to is
// no longer read; it is read when it is there; the host writes the next one when the copy has left.
// So the GPU's copy engine is at most one block ahead of the work, and the host at most two. Blocks
// lie in kPlaces places in turn: what was recorded for one of them finds every other block.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels::cuda {

class Device;

// Errors: there is too little memory. Belongs to the device's thread; no part of a recording.
Result<std::unique_ptr<Feed>> make_feed(Device& device, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
