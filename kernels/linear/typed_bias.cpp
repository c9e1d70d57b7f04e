#include "kernels/linear/typed_bias.h"

#include "kernels/cast/cuda.h"

namespace fettle::kernels::cuda {

Result<TypedBias> TypedBias::create(Device& device, DataType type, std::int64_t channels) {
  TypedBias made(device, type, channels);
  if (type != DataType::kFloat32) {
    FETTLE_ASSIGN(made.rounded_, device.allocate(channels * size_of(type)));
  }
  return made;
}

void TypedBias::set(const float* bias) {
  bias_ = bias;
  if (bias == nullptr || rounded_ == nullptr) return;
  cuda_round(*device_, type_, channels_, bias, static_cast<std::uint16_t*>(rounded_->data()));
  bias_ = rounded_->data();
}

}  // namespace fettle::kernels::cuda
