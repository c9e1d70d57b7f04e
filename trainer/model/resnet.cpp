#include "trainer/model/resnet.h"

#include "trainer/model/layer_configs.h"

namespace fettle::trainer {

namespace {

using api::LayerType;

// A layer list under construction.
class Builder {
 public:
  Builder& add(LayerType type) { return add(simple(type)); }
  Builder& add(const api::LayerConfig& layer) {
    layers_.push_back(layer);
    return *this;
  }
  Builder& conv_norm(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) {
    api::LayerConfig layer = conv(channels, kernel);
    if (stride != 1) layer.stride = stride;
    return add(layer).add(LayerType::kBatchNorm);
  }
  Builder& conv_norm_relu(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) {
    return conv_norm(channels, kernel, stride).add(LayerType::kRelu);
  }
  // Ends a block that began with `residual`; `changes`: its output's shape differs from its
  // input's.
  Builder& end_block(bool changes, std::int64_t channels, std::int64_t stride) {
    if (changes) add(LayerType::kShortcut).conv_norm(channels, 1, stride);
    return add(LayerType::kAdd).add(LayerType::kRelu);
  }
  std::vector<api::LayerConfig> take() { return std::move(layers_); }

 private:
  std::vector<api::LayerConfig> layers_;
};

void add_stem(Builder& network, ResNetStem stem) {
  if (stem == ResNetStem::kSmall) {
    network.conv_norm_relu(64, 3);
  } else {
    network.conv_norm_relu(64, 7, 2).add(LayerType::kMaxPool);
  }
}

}  // namespace

std::vector<api::LayerConfig> resnet9(std::int64_t classes) {
  Builder network;
  const auto wide_block = [&network](std::int64_t channels) {
    network.add(LayerType::kResidual).conv_norm_relu(channels, 3).conv_norm_relu(channels, 3);
    network.add(LayerType::kAdd);
  };
  network.conv_norm_relu(64, 3);
  network.conv_norm_relu(128, 3).add(LayerType::kMaxPool);
  wide_block(128);
  network.conv_norm_relu(256, 3).add(LayerType::kMaxPool);
  network.conv_norm_relu(512, 3).add(LayerType::kMaxPool);
  wide_block(512);
  return network.add(LayerType::kGlobalPool).add(linear(classes)).take();
}

std::vector<api::LayerConfig> resnet18(std::int64_t classes, ResNetStem stem) {
  Builder network;
  add_stem(network, stem);
  for (const std::int64_t channels : {64, 128, 256, 512}) {
    for (int block = 0; block < 2; ++block) {
      const bool changes = block == 0 && channels > 64;
      const std::int64_t stride = changes ? 2 : 1;
      network.add(LayerType::kResidual).conv_norm_relu(channels, 3, stride).conv_norm(channels, 3);
      network.end_block(changes, channels, stride);
    }
  }
  return network.add(LayerType::kGlobalPool).add(linear(classes)).take();
}

std::vector<api::LayerConfig> resnet50(std::int64_t classes, ResNetStem stem) {
  struct Stage {
    std::int64_t channels;  // of a block's first two convolutions; the third has four times as many
    int blocks;
  };
  Builder network;
  add_stem(network, stem);
  for (const auto& [channels, blocks] : {Stage{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      const std::int64_t stride = block == 0 && channels > 64 ? 2 : 1;
      network.add(LayerType::kResidual).conv_norm_relu(channels, 1);
      network.conv_norm_relu(channels, 3, stride).conv_norm(4 * channels, 1);
      network.end_block(/*changes=*/block == 0, 4 * channels, stride);
    }
  }
  return network.add(LayerType::kGlobalPool).add(linear(classes)).take();
}

}  // namespace fettle::trainer
