#include "trainer/step/precision.h"

namespace fettle::trainer {

kernels::DataType data_type(api::Precision precision) {
  switch (precision) {
    case api::Precision::kBf16:
      return kernels::DataType::kBFloat16;
    case api::Precision::kFp16:
      return kernels::DataType::kFloat16;
    default:
      return kernels::DataType::kFloat32;
  }
}

api::Precision precision_on(bool gpu, api::Precision wanted) {
  if (!gpu && wanted == api::Precision::kTf32) return api::Precision::kFp32;
  if (wanted != api::Precision::kAuto) return wanted;
  return gpu ? api::Precision::kTf32 : api::Precision::kFp32;
}

api::Precision precision_on(const kernels::Backend& backend, api::Precision wanted) {
  return precision_on(!backend.shares_memory(), wanted);
}

bool scales_loss(const api::TrainingConfig& config) {
  return config.precision == api::Precision::kFp16;
}

kernels::PlanOptions plan_options(const kernels::Backend& backend,
                                  const api::TrainingConfig& training, std::int64_t max_samples) {
  const bool tf32 = precision_on(backend, training.precision) == api::Precision::kTf32;
  return {max_samples, data_type(training.precision), tf32, training.deterministic.value_or(false)};
}

}  // namespace fettle::trainer
