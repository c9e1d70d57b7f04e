// Bound by bytes: 6 an element (elementwise.h). A thread takes eight numbers: 16 bytes on the side
// of the 16-bit type, twice 16 on the other.
#include "base/check.h"
#include "kernels/cuda/device_code/elementwise.h"
#include "kernels/cuda/operations.h"

namespace fettle::kernels {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};

// Calls use(a value of the C++ type).
template <class Use>
void with_16_bit_type(DataType type, Use use) {
  CHECK(type != DataType::kFloat32, "a conversion is between fp32 and a 16-bit type");
  if (type == DataType::kFloat16) return use(__half{});
  use(__nv_bfloat16{});
}

}  // namespace

void cuda_round(cuda::Device& device, DataType type, std::int64_t count, const float* from,
                std::uint16_t* to) {
  with_16_bit_type(type, [&](auto zero) {
    cuda::map(device, count, Same(), reinterpret_cast<decltype(zero)*>(to), from);
  });
}

void cuda_widen(cuda::Device& device, DataType type, std::int64_t count, const std::uint16_t* from,
                float* to) {
  with_16_bit_type(type, [&](auto zero) {
    cuda::map(device, count, Same(), to, reinterpret_cast<const decltype(zero)*>(from));
  });
}

}  // namespace fettle::kernels
