// The optimisers and conversions of the fast backends: the loops of loops.h and cast/loops.h
// compiled for AVX-512, AVX2 and plain x86-64. The same bits as the reference. Usable from any
// thread.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace fettle::kernels {

std::unique_ptr<UpdateOp> fast_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                      const UpdateSettings& settings);
double fast_sum_of_squares(std::int64_t count, const float* values);

}  // namespace fettle::kernels
