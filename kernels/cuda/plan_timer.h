// How long a plan takes on the device, by CUDA events. Belongs to the device's thread.
#pragma once

#include <functional>

#include "base/result.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels::cuda {

// Microseconds of one run of what `enqueue` enqueues on the device's stream: the least of a few
// samples, each of several runs, after one that does not count. Waits for the device. Errors:
// those of `enqueue`.
Result<double> microseconds_of(const Device& device, const std::function<Status()>& enqueue);

}  // namespace fettle::kernels::cuda
