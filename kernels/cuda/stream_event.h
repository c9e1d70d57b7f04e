// The Event of a backend: a CUDA event on its stream, by which other streams wait for it, and it
// for them.
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// Recorded into a graph it is an external event (cudaEventRecordExternal): it is reached in the
// middle of the graph, and another stream may begin there.
std::unique_ptr<kernels::Event> make_event(cudaStream_t stream);

}  // namespace fettle::kernels::cuda
