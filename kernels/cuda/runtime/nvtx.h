// Names of what the host is at, for Nsight and other tools that listen to NVTX.
#pragma once

#include <memory>

#include "kernels/profiling.h"

namespace fettle::kernels::cuda {

// In the domain "fettle". nullptr where no tool listens: whether one does is settled when the
// process begins (NVTX_INJECTION64_PATH, which the tools set). On the emulator always nullptr.
std::unique_ptr<Ranges> nvtx_ranges();

}  // namespace fettle::kernels::cuda
