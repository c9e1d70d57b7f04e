// Names of the host's work, for Nsight and other tools that read NVTX.
#pragma once

#include <memory>

#include "kernels/profiling.h"

namespace fettle::kernels::cuda {

// Creates ranges in the domain "fettle". nullptr without a tool: tools attach only when the process
// begins (through NVTX_INJECTION64_PATH, which they set). Always nullptr on the emulator.
std::unique_ptr<Ranges> nvtx_ranges();

}  // namespace fettle::kernels::cuda
