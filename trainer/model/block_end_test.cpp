// The backward pass through the ends of residual blocks, where one operation of the batch norm adds
// two parts of a gradient, masks them and steps back: counts its uses, and compares bits with a
// network that does these steps one after the other.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "kernels/aligned.h"
#include "kernels/backends/reference/backend.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/network.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using kernels::Buffer;
using kernels::ConstBuffer;
using kernels::DataType;

// Operations of a network's backward pass.
struct Calls {
  int ends_of_two_parts = 0;
  int ends_of_one_part = 0;
  int plain = 0;  // batch norms alone
  int sums = 0;   // of two arrays
  int relus = 0;
  bool operator==(const Calls&) const = default;
};

// The reference, with counters. It rounds at the end of a block as often as separate layers do, so
// that both compute the same.
class CountingBackend : public kernels::ReferenceBackend {
 public:
  Result<std::unique_ptr<kernels::BatchNormOp>> make_batch_norm(
      const kernels::BatchNormShape& shape, const kernels::PlanOptions& plan) override;
  std::unique_ptr<kernels::ReluOp> relu(DataType type) override;
  void add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y,
           bool relu) override {
    ++calls.sums;
    ReferenceBackend::add(type, count, a, b, y, relu);
  }

  Calls calls;
};

class CountingRelu : public kernels::ReluOp {
 public:
  CountingRelu(Calls& calls, std::unique_ptr<ReluOp> op) : calls_(calls), op_(std::move(op)) {}
  void forward(std::int64_t count, ConstBuffer x, Buffer y) override { op_->forward(count, x, y); }
  void backward(std::int64_t count, ConstBuffer y, ConstBuffer dy, Buffer dx) override {
    ++calls_.relus;
    op_->backward(count, y, dy, dx);
  }

 private:
  Calls& calls_;
  const std::unique_ptr<ReluOp> op_;
};

class CountingBatchNorm : public kernels::BatchNormOp {
 public:
  CountingBatchNorm(CountingBackend& backend, std::int64_t elements, DataType type,
                    std::unique_ptr<BatchNormOp> op)
      : backend_(backend), elements_(elements), type_(type), op_(std::move(op)) {}

  void forward_training(std::int64_t samples, ConstBuffer x, const float* scale, const float* shift,
                        float* mean, float* variance, Buffer y,
                        const kernels::BlockEnd& end) override {
    op_->forward_training(samples, x, scale, shift, mean, variance, y, {});
    if (end.shortcut == nullptr) return;
    backend_.add(type_, samples * elements_, y, end.shortcut, y, end.relu);
  }
  void forward_inference(std::int64_t samples, ConstBuffer x, const float* scale,
                         const float* shift, const float* mean, const float* variance, Buffer y,
                         const kernels::BlockEnd& end) override {
    op_->forward_inference(samples, x, scale, shift, mean, variance, y, end);
  }
  void backward(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy, const float* scale,
                Buffer dx, float* dscale, float* dshift) override {
    ++backend_.calls.plain;
    op_->backward(samples, x, y, dy, scale, dx, dscale, dshift);
  }
  void backward_end(std::int64_t samples, ConstBuffer x, ConstBuffer y, Buffer dy,
                    ConstBuffer other, const float* scale, Buffer dx, float* dscale,
                    float* dshift) override {
    ++(other != nullptr ? backend_.calls.ends_of_two_parts : backend_.calls.ends_of_one_part);
    op_->backward_end(samples, x, y, dy, other, scale, dx, dscale, dshift);
  }

 private:
  CountingBackend& backend_;
  const std::int64_t elements_;  // of a sample
  const DataType type_;
  const std::unique_ptr<BatchNormOp> op_;
};

Result<std::unique_ptr<kernels::BatchNormOp>> CountingBackend::make_batch_norm(
    const kernels::BatchNormShape& shape, const kernels::PlanOptions& plan) {
  FETTLE_ASSIGN(auto op, ReferenceBackend::make_batch_norm(shape, plan));
  return std::unique_ptr<kernels::BatchNormOp>(
      std::make_unique<CountingBatchNorm>(*this, shape.input.size(), plan.type, std::move(op)));
}

std::unique_ptr<kernels::ReluOp> CountingBackend::relu(DataType type) {
  return std::make_unique<CountingRelu>(calls, ReferenceBackend::relu(type));
}

// ---- Networks ----------------------------------------------------------------------------------

const auto kRelu = simple(LayerType::kRelu);
const auto kNorm = simple(LayerType::kBatchNorm);
const auto kResidual = simple(LayerType::kResidual);
const auto kShortcut = simple(LayerType::kShortcut);
const auto kAdd = simple(LayerType::kAdd);

// An identity, a projection, an end without ReLU, and the last block.
std::vector<api::LayerConfig> blocks() {
  return {conv(4),
          kNorm,
          kRelu,  //
          kResidual,
          conv(4),
          kNorm,
          kRelu,
          conv(4),
          kNorm,
          kAdd,
          kRelu,  //
          kResidual,
          conv(6),
          kNorm,
          kShortcut,
          conv(6, 1),
          kNorm,
          kAdd,
          kRelu,  //
          kResidual,
          conv(6),
          kNorm,
          kAdd,  //
          kResidual,
          conv(6),
          kNorm,
          kAdd,
          kRelu,  //
          simple(LayerType::kGlobalPool),
          linear(3)};
}

// The inner block's shortcut is also the outer one's, which has a part of its gradient before.
std::vector<api::LayerConfig> block_within_a_block() {
  return {conv(4), kResidual, kResidual, conv(4),   kNorm, kAdd, kRelu,    conv(4),
          kNorm,   kAdd,      kRelu,     kResidual, kNorm, kAdd, linear(3)};
}

enum class Ends { kInOne, kOneByOne };

NetworkPlan plan_of(const std::vector<api::LayerConfig>& layers, Ends ends) {
  api::ModelConfig model;
  model.layers = layers;
  NetworkPlan plan = *plan_network(model, {6, 6, 2}, 3);
  if (ends == Ends::kInOne) return plan;
  for (LayerPlan& layer : plan.layers) layer.ends_block = layer.end_relu = false;
  return plan;
}

// Images in the network's type.
class Images {
 public:
  Images(kernels::Backend& backend, DataType type, std::int64_t numbers)
      : type_(type), wide_(numbers), rounded_(numbers) {
    Random random(5);
    for (float& pixel : wide_) pixel = static_cast<float>(random.normal());
    if (type != DataType::kFloat32) backend.round(type, numbers, wide_.data(), rounded_.data());
  }
  ConstBuffer data() const {
    if (type_ == DataType::kFloat32) return wide_.data();
    return rounded_.data();
  }

 private:
  const DataType type_;
  kernels::AlignedArray<float> wide_;
  kernels::AlignedArray<std::uint16_t> rounded_;
};

struct Found {
  std::vector<float> gradients;
  Calls calls;  // of one backward pass
};

// Gradients summed over two micro-batches, the second with fewer samples.
Found gradients(const NetworkPlan& plan, DataType type, bool recompute = false) {
  constexpr std::int64_t kMostSamples = 5;
  CountingBackend backend;
  const auto network = *Network::create(plan, backend, {kMostSamples, type}, 11, recompute);
  EXPECT_EQ(network->activations().repeated > 0, recompute) << "the test is of no use";
  const auto loss = backend.softmax_cross_entropy(plan.classes, type);
  const Images images(backend, type, kMostSamples * plan.input.size());
  const std::vector<std::int64_t> indices = {3, 1, 4, 15, 9};
  const std::vector<std::int32_t> labels = {0, 2, 1, 1, 0};
  const std::uint32_t epoch = 2;
  for (const std::int64_t samples : {kMostSamples, kMostSamples - 2}) {
    const Pass pass{true, samples, 1, &epoch, indices.data()};
    const ConstBuffer logits = network->forward(pass, images.data());
    kernels::LossSums sums;
    loss->run(samples, logits, labels.data(), {}, &sums, network->logits_gradient());
    backend.calls = {};
    network->backward(pass, images.data());
  }
  return {network->parameters().gradients.download(), backend.calls};
}

TEST(BlockEnd, GoesBackInOneOperation) {
  const Found blocks_in_one = gradients(plan_of(blocks(), Ends::kInOne), DataType::kFloat32);
  EXPECT_EQ(blocks_in_one.calls,
            (Calls{.ends_of_two_parts = 3, .ends_of_one_part = 1, .plain = 3, .sums = 1}));
  const Found one_by_one = gradients(plan_of(blocks(), Ends::kOneByOne), DataType::kFloat32);
  EXPECT_EQ(one_by_one.calls, (Calls{.plain = 7, .sums = 4, .relus = 3}));
}

TEST(BlockEnd, GivesTheBitsOfOperationsOneAfterTheOther) {
  for (const auto& layers : {blocks(), block_within_a_block()}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
      const Found expected = gradients(plan_of(layers, Ends::kOneByOne), type);
      for (const bool recompute : {false, true}) {
        const Found found = gradients(plan_of(layers, Ends::kInOne), type, recompute);
        EXPECT_GT(found.calls.ends_of_two_parts + found.calls.ends_of_one_part, 0);
        EXPECT_EQ(found.gradients, expected.gradients);
      }
    }
  }
}

}  // namespace
}  // namespace fettle::trainer
