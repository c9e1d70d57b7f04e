// The matrix product of the reference's linear and convolution layers.
// A pure function; usable from any thread.
#pragma once

#include <cstdint>

namespace fettle::kernels {

// A matrix with strides: element (i, j) is data[i * row_stride + j * column_stride].
struct StridedMatrix {
  const float* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

// C += A B, with A [rows, inner], and B [inner, columns] and C [rows, columns] dense, row-major.
// Every element of C is summed in order of `inner`, one product at a time starting from its old
// value: the result does not depend on how the work is blocked, and adding the products of two
// halves one after the other gives the same bits as adding the whole.
void add_product(std::int64_t rows, std::int64_t columns, std::int64_t inner, StridedMatrix a,
                 const float* b, float* c);

}  // namespace fettle::kernels
