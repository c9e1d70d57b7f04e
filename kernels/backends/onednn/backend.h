// The fast CPU backend.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// `threads`: OpenMP threads of the calling thread's operations, at least 1.
Result<std::unique_ptr<Backend>> onednn_backend(int threads);

}  // namespace fettle::kernels
