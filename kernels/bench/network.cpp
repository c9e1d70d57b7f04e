#include "kernels/bench/network.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/philox.h"

namespace fettle::kernels::bench {
namespace {

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
  } else {
    add_conv(backend, {28, 28, 1}, 32);
    add_pool(backend, {28, 28, 32});
    add_conv(backend, {14, 14, 32}, 64);
    add_pool(backend, {14, 14, 64});
    add_linear(backend, 7 * 7 * 64, 10, false);
  }
  initialise();
}

void Network::add_parameters(Layer& layer, std::int64_t weights, std::int64_t biases) {
  layer.weights_offset = parameters_;
  layer.weights = weights;
  layer.biases = biases;
  // Every array starts on a cache line, in bf16 too.
  constexpr std::int64_t kAlignment = 32;
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

void Network::add_conv(Backend& backend, const ImageShape& input, std::int64_t channels) {
  const ConvShape shape{input, channels, 3, 1, 1, true, true};
  Layer layer;
  layer.name = "conv " + std::to_string(input.channels) + "-" + std::to_string(channels);
  layer.weighted = must(backend.conv(shape, {kBatch, type_}));
  add_parameters(layer, channels * 9 * input.channels, channels);
  add_buffers(layer, shape.output().size());
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
  rounded_ = AlignedArray<std::uint16_t>(type_ == DataType::kBFloat16 ? parameters_ : 0);
  Random random(1);
  for (const Layer& layer : layers_) {
    const double outputs = std::max(1.0, static_cast<double>(layer.biases));
    const double bound = std::sqrt(outputs / std::max(1.0, static_cast<double>(layer.weights)));
    for (std::int64_t i = 0; i < layer.weights; ++i) {
      weights_[layer.weights_offset + i] = static_cast<float>(bound * (2 * random.uniform() - 1));
    }
  }
  if (!rounded_.empty()) backend_.to_bfloat16({weights_.begin(), weights_.end()}, rounded_.data());
  images_ = AlignedArray<std::byte>(kBatch * 784 * size_of(type_));
  std::vector<float> pixels(static_cast<std::size_t>(kBatch * 784));
  for (float& pixel : pixels) pixel = static_cast<float>(random.normal());
  if (type_ == DataType::kFloat32) {
    std::copy(pixels.begin(), pixels.end(), reinterpret_cast<float*>(images_.data()));
  } else {
    backend_.to_bfloat16(pixels, reinterpret_cast<std::uint16_t*>(images_.data()));
  }
  for (std::int64_t i = 0; i < kBatch; ++i) {
    labels_.push_back(static_cast<std::int32_t>(random.below(10)));
  }
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

void Network::forward() {
  const std::byte* x = images_.data();
  for (Layer& layer : layers_) {
    if (layer.weighted) {
      const float* bias = weights_.data() + layer.weights_offset + layer.weights;
      bias += (32 - layer.weights % 32) % 32;
      timed(layer.name + " set_weights", [&] {
        const void* weights = weights_.data() + layer.weights_offset;
        if (!rounded_.empty()) weights = rounded_.data() + layer.weights_offset;
        layer.weighted->set_weights(weights, bias);
      });
      timed(layer.name + " forward",
            [&] { layer.weighted->forward(kBatch, x, layer.output.data()); });
    } else {
      timed(layer.name + " forward", [&] { layer.pool->forward(kBatch, x, layer.output.data()); });
    }
    x = layer.output.data();
  }
}

void Network::backward() {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    const std::byte* x = i == 0 ? images_.data() : layers_[i - 1].output.data();
    std::byte* dx = i == 0 ? nullptr : layers_[i - 1].gradient.data();
    timed(layer.name + " backward", [&] {
      if (layer.pool) {
        layer.pool->backward(kBatch, x, layer.output.data(), layer.gradient.data(), dx);
        return;
      }
      float* gradient = weight_gradients_.data() + layer.weights_offset;
      layer.weighted->backward(kBatch, x, layer.output.data(), layer.gradient.data(), dx, gradient,
                               gradient + (layer.weights + 31) / 32 * 32);
    });
  }
}

void Network::update() {
  UpdateSettings settings;
  settings.gradient_scale = 1.0F / kBatch;
  settings.learning_rate = 0.01F;
  settings.momentum = 0.9F;
  backend_.sgd({parameters_, weights_.data(), weight_gradients_.data(), momentum_.data(), nullptr,
                rounded_.empty() ? nullptr : rounded_.data()},
               settings);
}

double Network::step() {
  next_timing_ = 0;
  timed("zero gradients",
        [&] { std::fill_n(weight_gradients_.data(), weight_gradients_.size(), 0.0F); });
  forward();
  LossSums sums;
  timed("loss", [&] {
    sums = loss_->run(kBatch, layers_.back().output.data(), labels_.data(), 0,
                      layers_.back().gradient.data());
  });
  backward();
  timed("update", [&] { update(); });
  return sums.loss / kBatch;
}

}  // namespace fettle::kernels::bench
