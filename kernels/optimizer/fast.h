// The optimisers and conversions of the fast backends: the loops of loops.h and cast/loops.h
// compiled for AVX-512, AVX2 and plain x86-64. The same bits as the reference. Usable from any
// thread.
#pragma once

#include "kernels/backend.h"

namespace fettle::kernels {

void fast_sgd(const UpdateBuffers& buffers, const UpdateSettings& settings);
void fast_adam(const UpdateBuffers& buffers, const UpdateSettings& settings, bool decoupled);
void fast_rmsprop(const UpdateBuffers& buffers, const UpdateSettings& settings);
void fast_lamb(const UpdateBuffers& one_tensor, const UpdateSettings& settings);
double fast_sum_of_squares(std::int64_t count, const float* values);

}  // namespace fettle::kernels
