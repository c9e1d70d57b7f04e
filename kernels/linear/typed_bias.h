// The bias of a layer as cuBLASLt and cuDNN read it: in the type of the activations. In fp32 that
// is the bias itself; in 16 bits a rounded copy, as torch.autocast has it.
// Belongs to the device's thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels::cuda {

class TypedBias {
 public:
  // Errors: no memory for the copy.
  static Result<TypedBias> create(Device& device, DataType type, std::int64_t channels);

  // From now on the bias is `bias`, or what it is at this point of the stream; nullptr: none.
  void set(const float* bias);
  ConstBuffer get() const { return bias_; }

 private:
  TypedBias(Device& device, DataType type, std::int64_t channels)
      : device_(&device), type_(type), channels_(channels) {}

  Device* device_;
  DataType type_;
  std::int64_t channels_;
  std::unique_ptr<Memory> rounded_;  // nullptr in fp32
  ConstBuffer bias_ = nullptr;
};

}  // namespace fettle::kernels::cuda
