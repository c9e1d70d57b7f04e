// The two networks of the benchmark, and their training step straight on Backend operations:
// forward, loss, backward, SGD with momentum. Buffers are made once. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/backend.h"

namespace fettle::kernels::bench {

// Nanoseconds spent in each operation, in order of the step.
struct Timing {
  std::string operation;
  double nanoseconds = 0;
};

class Network {
 public:
  // `name`: "mlp" (784-512-512-10) or "cnn" (conv3x3-32, relu, maxpool2, conv3x3-64, relu,
  // maxpool2, linear 10, on 28x28x1).
  Network(Backend& backend, const std::string& name, DataType type);

  // One step on the same random images each time. Returns the loss a sample.
  double step();
  static constexpr std::int64_t kBatch = 128;

  // Switches the stop-watch of every operation on.
  void watch() { watching_ = true; }
  const std::vector<Timing>& timings() const { return timings_; }

 private:
  struct Layer {
    std::string name;
    std::unique_ptr<WeightedOp> weighted;  // or
    std::unique_ptr<BatchNormOp> norm;     // or
    std::unique_ptr<PoolOp> pool;
    std::int64_t weights_offset = 0, weights = 0, biases = 0;
    AlignedArray<std::byte> output, gradient;
  };

  void add_linear(Backend& backend, std::int64_t inputs, std::int64_t outputs, bool relu);
  void add_conv(Backend& backend, const ConvShape& shape);
  void add_norm(Backend& backend, const ImageShape& input);
  void add_pool(Backend& backend, const ImageShape& input);
  void add_parameters(Layer& layer, std::int64_t weights, std::int64_t biases);
  void add_buffers(Layer& layer, std::int64_t outputs) const;
  void initialise();
  void plan_update();
  void forward();
  void backward();
  void forward(Layer& layer, const std::byte* x);
  void backward(Layer& layer, const std::byte* x, std::byte* dx);
  // Where the biases of a layer lie among its parameters.
  static std::int64_t biases_offset(const Layer& layer);
  template <class Work>
  void timed(const std::string& operation, Work work);

  Backend& backend_;
  DataType type_;
  std::vector<Layer> layers_;
  std::int64_t parameters_ = 0;
  std::unique_ptr<SoftmaxCrossEntropyOp> loss_;
  AlignedArray<float> weights_, weight_gradients_, momentum_, running_mean_, running_variance_;
  AlignedArray<std::uint16_t> rounded_;
  AlignedArray<std::byte> images_;
  std::vector<std::int32_t> labels_;
  std::unique_ptr<UpdateOp> update_;
  StepControl control_;
  std::vector<Timing> timings_;
  std::size_t next_timing_ = 0;
  bool watching_ = false;
};

}  // namespace fettle::kernels::bench
