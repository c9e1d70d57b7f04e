#include "kernels/bench/network.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/philox.h"

namespace fettle::kernels::bench {
namespace {

// Every array of parameters starts on a cache line, in bf16 too.
constexpr std::int64_t kAlignment = 32;

// Of a batch norm. All share their running statistics, which training does not read.
constexpr std::int64_t kMaxChannels = 64;

template <class Op>
std::unique_ptr<Op> must(Result<std::unique_ptr<Op>> made) {
  return std::move(made).value();
}

}  // namespace

Network::Network(Backend& backend, const std::string& name, DataType type)
    : backend_(backend), type_(type), loss_(backend.softmax_cross_entropy(10, type)) {
  if (name == "mlp") {
    add_linear(backend, 784, 512, true);
    add_linear(backend, 512, 512, true);
    add_linear(backend, 512, 10, false);
  } else if (name == "cnn") {
    add_conv(backend, {{28, 28, 1}, 32, 3, 1, 1, true, true});
    add_pool(backend, {28, 28, 32});
    add_conv(backend, {{14, 14, 32}, 64, 3, 1, 1, true, true});
    add_pool(backend, {14, 14, 64});
    add_linear(backend, 7 * 7 * 64, 10, false);
  } else {
    add_conv(backend, {{28, 28, 1}, 16, 5, 1, 2, true, false});
    add_norm(backend, {28, 28, 16});
    add_pool(backend, {28, 28, 16});
    add_conv(backend, {{14, 14, 16}, 32, 5, 1, 2, true, false});
    add_norm(backend, {14, 14, 32});
    add_pool(backend, {14, 14, 32});
    add_linear(backend, 7 * 7 * 32, 10, false);
  }
  initialise();
}

void Network::add_parameters(Layer& layer, std::int64_t weights, std::int64_t biases) {
  layer.weights_offset = parameters_;
  layer.weights = weights;
  layer.biases = biases;
  parameters_ += (weights + kAlignment - 1) / kAlignment * kAlignment;
  parameters_ += (biases + kAlignment - 1) / kAlignment * kAlignment;
}

void Network::add_buffers(Layer& layer, std::int64_t outputs) const {
  layer.output = AlignedArray<std::byte>(kBatch * outputs * size_of(type_));
  layer.gradient = AlignedArray<std::byte>(kBatch * outputs * size_of(type_));
}

void Network::add_linear(Backend& backend, std::int64_t inputs, std::int64_t outputs, bool relu) {
  Layer layer;
  layer.name = "linear " + std::to_string(inputs) + "-" + std::to_string(outputs);
  layer.weighted = must(backend.linear({inputs, outputs, true, relu}, {kBatch, type_}));
  add_parameters(layer, inputs * outputs, outputs);
  add_buffers(layer, outputs);
  layers_.push_back(std::move(layer));
}

void Network::add_conv(Backend& backend, const ConvShape& shape) {
  Layer layer;
  layer.name =
      "conv " + std::to_string(shape.input.channels) + "-" + std::to_string(shape.channels);
  layer.weighted = must(backend.conv(shape, {kBatch, type_}));
  add_parameters(layer, shape.channels * shape.kernel * shape.kernel * shape.input.channels,
                 shape.channels);
  add_buffers(layer, shape.output().size());
  layers_.push_back(std::move(layer));
}

void Network::add_norm(Backend& backend, const ImageShape& input) {
  Layer layer;
  layer.name = "norm " + std::to_string(input.channels);
  layer.norm = must(backend.batch_norm({input, 1e-5F, 0.1F, true}, {kBatch, type_}));
  add_parameters(layer, input.channels, input.channels);
  add_buffers(layer, input.size());
  layers_.push_back(std::move(layer));
}

void Network::add_pool(Backend& backend, const ImageShape& input) {
  const PoolShape shape{PoolKind::kMax, input, 2, 2, 2};
  Layer layer;
  layer.name = "pool " + std::to_string(input.channels);
  layer.pool = must(backend.pool(shape, {kBatch, type_}));
  add_buffers(layer, shape.output().size());
  layers_.push_back(std::move(layer));
}

void Network::initialise() {
  weights_ = AlignedArray<float>(parameters_);
  weight_gradients_ = AlignedArray<float>(parameters_);
  momentum_ = AlignedArray<float>(parameters_);
  running_mean_ = AlignedArray<float>(kMaxChannels);
  running_variance_ = AlignedArray<float>(kMaxChannels);
  rounded_ = AlignedArray<std::uint16_t>(type_ == DataType::kBFloat16 ? parameters_ : 0);
  Random random(1);
  for (const Layer& layer : layers_) {
    const double outputs = std::max(1.0, static_cast<double>(layer.biases));
    const double bound = std::sqrt(outputs / std::max(1.0, static_cast<double>(layer.weights)));
    for (std::int64_t i = 0; i < layer.weights; ++i) {
      weights_[layer.weights_offset + i] = static_cast<float>(bound * (2 * random.uniform() - 1));
    }
  }
  if (!rounded_.empty()) backend_.round(type_, parameters_, weights_.data(), rounded_.data());
  images_ = AlignedArray<std::byte>(kBatch * 784 * size_of(type_));
  std::vector<float> pixels(static_cast<std::size_t>(kBatch * 784));
  for (float& pixel : pixels) pixel = static_cast<float>(random.normal());
  if (type_ == DataType::kFloat32) {
    std::copy(pixels.begin(), pixels.end(), reinterpret_cast<float*>(images_.data()));
  } else {
    backend_.round(type_, std::ssize(pixels), pixels.data(),
                   reinterpret_cast<std::uint16_t*>(images_.data()));
  }
  plan_update();
  for (std::int64_t i = 0; i < kBatch; ++i) {
    labels_.push_back(static_cast<std::int32_t>(random.below(10)));
  }
}

void Network::plan_update() {
  UpdateBuffers all{parameters_, weights_.data(), weight_gradients_.data(), momentum_.data()};
  if (!rounded_.empty()) all.rounded = rounded_.data();
  UpdateSettings settings;
  settings.momentum = 0.9;
  update_ = backend_.update(UpdateRule::kSgd, {all}, settings);
  control_.learning_rate = 0.01F;
  control_.gradient_scale = 1.0F / kBatch;
  control_.apply = 1;
}

template <class Work>
void Network::timed(const std::string& operation, Work work) {
  if (!watching_) return work();
  const auto start = std::chrono::steady_clock::now();
  work();
  const auto spent = std::chrono::steady_clock::now() - start;
  if (next_timing_ == timings_.size()) timings_.push_back({operation, 0});
  timings_[next_timing_++].nanoseconds +=
      static_cast<double>(std::chrono::nanoseconds(spent).count());
}

std::int64_t Network::biases_offset(const Layer& layer) {
  return layer.weights_offset + (layer.weights + kAlignment - 1) / kAlignment * kAlignment;
}

void Network::forward(Layer& layer, const std::byte* x) {
  const float* first = weights_.data() + layer.weights_offset;
  const float* second = weights_.data() + biases_offset(layer);
  if (layer.weighted) {
    timed(layer.name + " set_weights", [&] {
      LayerWeights from{first, second, second};
      if (!rounded_.empty()) {
        from.weights = rounded_.data() + layer.weights_offset;
        from.typed_bias = rounded_.data() + biases_offset(layer);
      }
      layer.weighted->set_weights(from);
    });
  }
  timed(layer.name + " forward", [&] {
    if (layer.weighted) layer.weighted->forward(kBatch, x, layer.output.data());
    if (layer.pool) layer.pool->forward(kBatch, x, layer.output.data());
    if (layer.norm) {
      layer.norm->forward_training(kBatch, x, first, second, running_mean_.data(),
                                   running_variance_.data(), layer.output.data(), {});
    }
  });
}

void Network::forward() {
  const std::byte* x = images_.data();
  for (Layer& layer : layers_) {
    forward(layer, x);
    x = layer.output.data();
  }
}

void Network::backward(Layer& layer, const std::byte* x, std::byte* dx) {
  const std::byte* y = layer.output.data();
  std::byte* dy = layer.gradient.data();
  float* first = weight_gradients_.data() + layer.weights_offset;
  float* second = weight_gradients_.data() + biases_offset(layer);
  timed(layer.name + " backward", [&] {
    if (layer.weighted) layer.weighted->backward(kBatch, x, y, dy, dx, first, second);
    if (layer.pool) layer.pool->backward(kBatch, x, y, dy, dx);
    if (layer.norm) {
      layer.norm->backward(kBatch, x, y, dy, weights_.data() + layer.weights_offset, dx, first,
                           second);
    }
  });
}

void Network::backward() {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const std::byte* x = i == 0 ? images_.data() : layers_[i - 1].output.data();
    std::byte* dx = i == 0 ? nullptr : layers_[i - 1].gradient.data();
    backward(layers_[i], x, dx);
  }
}

double Network::step() {
  next_timing_ = 0;
  timed("zero gradients",
        [&] { std::fill_n(weight_gradients_.data(), weight_gradients_.size(), 0.0F); });
  forward();
  LossSums sums;
  timed("loss", [&] {
    loss_->run(kBatch, layers_.back().output.data(), labels_.data(), {}, &sums,
               layers_.back().gradient.data());
  });
  backward();
  timed("update", [&] { update_->run(&control_); });
  return sums.loss / kBatch;
}

}  // namespace fettle::kernels::bench
