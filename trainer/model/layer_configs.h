// Shorthands for model.layers in C++, for benchmarks and tests.
#pragma once

#include <cstdint>
#include <optional>

#include "api/trainer/trainer_config.h"

namespace fettle::trainer {

inline api::LayerConfig simple(api::LayerType type) {
  api::LayerConfig config;
  config.type = type;
  return config;
}

inline api::LayerConfig linear(std::int64_t units) {
  api::LayerConfig config = simple(api::LayerType::kLinear);
  config.units = units;
  return config;
}

inline api::LayerConfig conv(std::int64_t channels, std::optional<std::int64_t> kernel = {}) {
  api::LayerConfig config = simple(api::LayerType::kConv);
  config.channels = channels;
  config.kernel = kernel;
  return config;
}

inline api::LayerConfig embedding(std::int64_t units) {
  api::LayerConfig config = simple(api::LayerType::kEmbedding);
  config.units = units;
  return config;
}

inline api::LayerConfig attention(std::int64_t heads) {
  api::LayerConfig config = simple(api::LayerType::kAttention);
  config.heads = heads;
  return config;
}

inline api::LayerConfig dropout(double rate) {
  api::LayerConfig config = simple(api::LayerType::kDropout);
  config.rate = rate;
  return config;
}

}  // namespace fettle::trainer
