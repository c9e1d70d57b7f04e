#include "kernels/reduce.h"

#include "kernels/bfloat16.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

FETTLE_FOR_EACH_PROCESSOR void add_floats(std::int64_t rows, std::int64_t channels,
                                          const float* __restrict values, float* __restrict sums) {
  for (std::int64_t row = 0; row < rows; ++row, values += channels) {
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += values[c];
  }
}

FETTLE_FOR_EACH_PROCESSOR void add_bfloats(std::int64_t rows, std::int64_t channels,
                                           const std::uint16_t* __restrict values,
                                           float* __restrict sums) {
  for (std::int64_t row = 0; row < rows; ++row, values += channels) {
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += from_bfloat16(values[c]);
  }
}

}  // namespace

void fast_add_rows(DataType type, std::int64_t rows, std::int64_t channels, ConstBuffer values,
                   float* sums) {
  if (type == DataType::kFloat32) {
    add_floats(rows, channels, static_cast<const float*>(values), sums);
  } else {
    add_bfloats(rows, channels, static_cast<const std::uint16_t*>(values), sums);
  }
}

}  // namespace fettle::kernels
