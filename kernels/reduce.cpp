#include "kernels/reduce.h"

#include "kernels/bfloat16.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

float widen(float value) { return value; }
float widen(std::uint16_t value) { return from_bfloat16(value); }

template <class Element>
FETTLE_FOR_EACH_PROCESSOR void add_rows(std::int64_t rows, std::int64_t channels,
                                        const Element* __restrict values, float* __restrict sums) {
  for (std::int64_t row = 0; row < rows; ++row, values += channels) {
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += widen(values[c]);
  }
}

}  // namespace

void fast_add_rows(DataType type, std::int64_t rows, std::int64_t channels, ConstBuffer values,
                   float* sums) {
  if (type == DataType::kFloat32) {
    add_rows(rows, channels, static_cast<const float*>(values), sums);
  } else {
    add_rows(rows, channels, static_cast<const std::uint16_t*>(values), sums);
  }
}

}  // namespace fettle::kernels
