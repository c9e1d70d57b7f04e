// Sums down the rows of a matrix, for the fast backends' bias gradients.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace fettle::kernels {

// sums[c] += the sum over r of values[r, c], in fp32 and in order of r.
void fast_add_rows(DataType type, std::int64_t rows, std::int64_t channels, ConstBuffer values,
                   float* sums);

}  // namespace fettle::kernels
