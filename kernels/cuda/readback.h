// A readback on a stream: results of a step come to the host while the GPU does the next step.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/platform.h"

namespace fettle::kernels::cuda {

// For values of `bytes`. Never captured: every copy has a place of its own.
std::unique_ptr<Readback> make_readback(cudaStream_t stream, std::int64_t bytes);

}  // namespace fettle::kernels::cuda
