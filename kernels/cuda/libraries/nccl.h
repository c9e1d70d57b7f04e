// The Communicator of NVIDIA GPUs: NCCL. Only in libfettle_cuda.so.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/cuda/libraries/communicator.h"

namespace fettle::kernels::cuda {

// For this process's first GPU. Errors: its UUID cannot be read.
Result<std::unique_ptr<CommunicatorMaker>> nccl_communicators();

}  // namespace fettle::kernels::cuda
