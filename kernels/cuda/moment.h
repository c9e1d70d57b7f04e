// A moment on a stream: a CUDA event, with which other streams wait for this one and it for them.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// Recorded into a graph it is an external event (cudaEventRecordExternal): it is reached in the
// middle of the graph, and another stream may begin there.
std::unique_ptr<Moment> make_moment(cudaStream_t stream);

}  // namespace fettle::kernels::cuda
