// The Mailbox of a CUDA stream: pinned slots in a ring, each with an event that tells when its copy
// has arrived. One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

std::unique_ptr<Mailbox> make_mailbox(cudaStream_t stream, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
