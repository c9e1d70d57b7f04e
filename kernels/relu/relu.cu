// Bound by bytes: forward moves two numbers an element, backward three (elementwise.h).
#include "kernels/cuda/device_code/elementwise.h"
#include "kernels/cuda/operations.h"
#include "kernels/relu/formulas.h"

namespace fettle::kernels {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return relu(x); }
};

struct ReluGradient {
  __device__ float operator()(float y, float dy) const { return relu_gradient(y, dy); }
};

template <class T>
class CudaRelu : public ReluOp {
 public:
  explicit CudaRelu(cuda::Device& device) : device_(device) {}

  void forward(std::int64_t count, ConstBuffer x, Buffer y) override {
    cuda::map(device_, count, Relu(), static_cast<T*>(y), static_cast<const T*>(x));
  }

  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    cuda::map(device_, count, ReluGradient(), static_cast<T*>(dx), static_cast<const T*>(y),
              static_cast<const T*>(dy));
  }

 private:
  cuda::Device& device_;
};

}  // namespace

std::unique_ptr<ReluOp> cuda_relu(cuda::Device& device, DataType type) {
  return cuda::with_type(type, [&](auto zero) -> std::unique_ptr<ReluOp> {
    return std::make_unique<CudaRelu<decltype(zero)>>(device);
  });
}

}  // namespace fettle::kernels
