// The KernelTimer of NVIDIA GPUs: by events on the stream, between which a kernel is called several
// times.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backends/cuda/kernel_timer.h"

namespace fettle::kernels::cuda {

// On this process's first GPU. Errors: there is none that it could run on, in words.
Result<std::unique_ptr<KernelTimer>> event_timer();

}  // namespace fettle::kernels::cuda
