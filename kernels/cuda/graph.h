// A CUDA graph: the work that was enqueued on a stream while it captured, launched any number of
// times by one call. Kernel arguments are as they were; what they point to is read anew.
#pragma once

#include <functional>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// Captures what `work` enqueues on `stream`, without doing it. `work` enqueues on no other stream,
// allocates nothing and waits for nothing: CUDA would invalidate the capture, and this abort.
std::unique_ptr<Graph> capture(cudaStream_t stream, const std::function<void()>& work);

}  // namespace fettle::kernels::cuda
