// Handles error codes of the CUDA runtime. Usable from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/source_place.h"
#include "kernels/cuda/runtime/platform.h"

namespace fettle::kernels::cuda {

// "cudaErrorInvalidValue (1): invalid argument".
std::string words_of(cudaError_t error);

// For calls that can fail for reasons outside the program. Returns "`what`: ..." or success.
Status status_of(cudaError_t error, std::string_view what);

// For calls that cannot fail, and for errors of kernels that a later call reports. Aborts with the
// error in words and the place.
void must_succeed(cudaError_t error, SourcePlace where = SourcePlace::current());

}  // namespace fettle::kernels::cuda
