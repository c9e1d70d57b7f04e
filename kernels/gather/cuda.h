// Gathering samples that lie in a GPU's memory. Belongs to the device's thread.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

namespace cuda {
class Device;
}

// Errors: no memory for the table of what becomes of bytes (1 KB).
Result<std::unique_ptr<GatherOp>> cuda_gather(cuda::Device& device, const Samples& samples,
                                              const ImageLook& look, const PlanOptions& plan);

}  // namespace fettle::kernels
