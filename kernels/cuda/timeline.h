// A timeline on a stream, by CUDA events: a mark costs the host a microsecond or two and the GPU
// nothing that other work waits for.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// For a stream on which all enqueued work is done.
std::unique_ptr<Timeline> make_timeline(cudaStream_t stream);

}  // namespace fettle::kernels::cuda
