// A mailbox on a stream: results of a step come to the host while the GPU goes on with the next.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// For values of `bytes`. Posting is no part of a recording: every post has a place of its own.
std::unique_ptr<Mailbox> make_mailbox(cudaStream_t stream, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
