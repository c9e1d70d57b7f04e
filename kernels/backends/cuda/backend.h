// The backend "cuda": every operation's CUDA version behind the Backend interface.
#pragma once

#include <memory>

#include "base/result.h"
#include "kernels/backend.h"

namespace fettle::kernels {

// Creates the backend on this process's first GPU. All calls are enqueued on one stream; graphs are
// CUDA graphs. Errors: no usable GPU, in words (cuda/runtime/device.h).
Result<std::unique_ptr<Backend>> cuda_backend();

}  // namespace fettle::kernels
