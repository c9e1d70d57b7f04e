#include "kernels/linear/choice.h"

#include <algorithm>

namespace fettle::kernels {

LinearBy linear_by(CpuKind cpu, const LinearShape& shape, const PlanOptions& plan) {
  constexpr std::int64_t kTile = 16;  // rows of an AMX tile, and columns of its sums
  if (cpu == CpuKind::kOther) return LinearBy::kOneDnn;  // the packed product needs AVX-512
  if (cpu != CpuKind::kAmx || plan.type != DataType::kBFloat16) return LinearBy::kPackedProduct;
  const std::int64_t smallest = std::min({shape.inputs, shape.outputs, plan.max_samples});
  return smallest < kTile ? LinearBy::kPackedProduct : LinearBy::kOneDnn;
}

}  // namespace fettle::kernels
