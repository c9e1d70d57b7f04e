// A recording as a CUDA graph: what a stream was ordered while it captured, to be run as often as
// one likes with one call. Kernel arguments are as they were; what they point to is read anew.
#pragma once

#include <functional>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// Captures what `work` orders on `stream`, without doing it. `work` orders on no other stream,
// allocates nothing and waits for nothing: CUDA would spoil the capture, and this abort.
std::unique_ptr<Recording> capture(cudaStream_t stream, const std::function<void()>& work);

}  // namespace fettle::kernels::cuda
