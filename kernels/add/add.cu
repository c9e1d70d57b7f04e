// Bound by bytes: an addition moves three numbers (elementwise.h).
#include "kernels/cuda/device_code/elementwise.h"
#include "kernels/cuda/operations.h"
#include "kernels/relu/formulas.h"

namespace fettle::kernels {
namespace {

// Tests `rectified` for each element: the test hides behind the bytes and saves a second kernel.
struct Plus {
  bool rectified;
  __device__ float operator()(float a, float b) const { return rectified ? relu(a + b) : a + b; }
};

struct PlusScaled {
  float factor;
  __device__ float operator()(float y, float x) const { return y + factor * x; }
};

}  // namespace

void cuda_add(cuda::Device& device, DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b,
              Buffer y, bool relu) {
  cuda::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cuda::map(device, count, Plus{relu}, static_cast<T*>(y), static_cast<const T*>(a),
              static_cast<const T*>(b));
  });
}

void cuda_add_scaled(cuda::Device& device, std::int64_t count, float factor, const float* x,
                     float* y) {
  const float* before = y;
  cuda::map(device, count, PlusScaled{factor}, y, before, x);
}

}  // namespace fettle::kernels
