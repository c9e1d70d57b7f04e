// Bound by bytes as ReLU is, but by a small margin: an exponential and a division for each element,
// and in the exact form erfc, are 20 to 50 instructions. So it computes in fp32, with a kernel for
// each form; elementwise.h does the rest.
#include "kernels/cuda/device_code/elementwise.h"
#include "kernels/cuda/operations.h"
#include "kernels/gelu/formulas.h"

namespace fettle::kernels {
namespace {

template <GeluForm form>
struct Gelu {
  __device__ float operator()(float x) const { return x * gelu_at<form>(x).share; }
};

template <GeluForm form>
struct GeluGradient {
  __device__ float operator()(float x, float dy) const { return dy * gelu_at<form>(x).slope; }
};

template <GeluForm form, class T>
class CudaGelu : public GeluOp {
 public:
  explicit CudaGelu(cuda::Device& device) : device_(device) {}

  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    cuda::map(device_, count, Gelu<form>(), static_cast<T*>(y), static_cast<const T*>(x));
  }

  void backward(std::int64_t count, ConstBuffer x, ConstBuffer dy, Buffer dx) override {
    cuda::map(device_, count, GeluGradient<form>(), static_cast<T*>(dx), static_cast<const T*>(x),
              static_cast<const T*>(dy));
  }

 private:
  cuda::Device& device_;
};

}  // namespace

std::unique_ptr<GeluOp> cuda_gelu(cuda::Device& device, GeluForm form, DataType type) {
  return cuda::with_type(type, [&](auto zero) -> std::unique_ptr<GeluOp> {
    using T = decltype(zero);
    return with_gelu_form(form, [&](auto known) -> std::unique_ptr<GeluOp> {
      return std::make_unique<CudaGelu<known(), T>>(device);
    });
  });
}

}  // namespace fettle::kernels
