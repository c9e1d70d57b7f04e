// Int8Network: a network of quantized_plan.h on a backend, in fp32 on the numbers that 8-bit
// integers can be. Allocates its own memory beside a training's. One thread, the backend's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/device_array.h"
#include "trainer/data/batch_writer.h"
#include "trainer/data/image_set.h"
#include "trainer/model/network.h"
#include "trainer/quantize/quantized_plan.h"

namespace fettle::trainer {

class Int8Network {
 public:
  // `backend` must outlive the network. `samples`: held at once. Errors: too little memory; a layer
  // that the backend cannot run.
  static Result<std::unique_ptr<Int8Network>> create(kernels::Backend& backend,
                                                     NetworkValues values, std::int64_t samples);

  // Bytes of one with this plan, without workspaces of operations.
  static std::int64_t bytes(const NetworkPlan& plan, std::int64_t samples);

  // Sets the ranges from these samples. Before round().
  void calibrate(api::Calibration calibration, const ImageSet& images,
                 std::span<const std::int64_t> samples, const BatchWriter& writer);
  // Errors: another number of ranges than the layers need.
  Status set_ranges(std::span<const float> ranges);
  std::vector<float> ranges() const { return ranges_of(values_.plan, values_.statistics); }

  // Rounds the weights; the ranges are known. Errors: too little memory for a piece of them.
  Status round(std::int64_t weight_bits);

  // Sums of the loss over these samples. `writer` writes fp32.
  kernels::LossSums evaluate(const ImageSet& images, std::span<const std::int64_t> samples,
                             const BatchWriter& writer);

 private:
  Int8Network(kernels::Backend& backend, NetworkValues values, std::int64_t samples)
      : backend_(backend), values_(std::move(values)), samples_(samples) {}
  Status allocate();
  void upload_statistics();
  // Calls `observe` with the inputs of each quantize layer, in host memory.
  using Observe = std::function<void(const LayerPlan& layer, std::span<const float> values)>;
  void observe(const ImageSet& images, std::span<const std::int64_t> samples,
               const BatchWriter& writer, const Observe& observe);
  // Calls `use` with each batch's logits; its labels are in labels_.
  using UseLogits = std::function<void(std::int64_t predictions, kernels::ConstBuffer logits)>;
  void run(const ImageSet& images, std::span<const std::int64_t> samples, const BatchWriter& writer,
           const InputObserver* observer, const UseLogits& use);

  kernels::Backend& backend_;
  NetworkValues values_;
  const std::int64_t samples_;  // held at once
  std::unique_ptr<Network> network_;
  std::unique_ptr<kernels::SoftmaxCrossEntropyOp> loss_;
  kernels::DeviceArray<std::uint8_t> pixels_;
  kernels::DeviceArray<std::int32_t> labels_;
  kernels::DeviceArray<kernels::LossSums> sums_;
};

}  // namespace fettle::trainer
