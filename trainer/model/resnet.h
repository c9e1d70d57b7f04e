// Residual networks (He et al. 2016) as layer lists, for benchmarks and tests; a Study spells out
// the same entries (examples/resnet9.yaml). Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trainer/trainer_config.h"

namespace fettle::trainer {

// The small network of the DAWNBench entries (Page 2018): 64-128-256-512 channels, two blocks.
// Takes images from 8 x 8 on; ends with global average pooling, where the original has max pooling
// of 4 x 4.
std::vector<api::LayerConfig> resnet9(std::int64_t classes);

// The first layers of a ResNet. Large: images of about 224 x 224 are first made four times smaller
// (convolution of 7 and max pooling; of 2 x 2 without padding, where torchvision has 3 x 3 with
// padding). Small: images of about 32 x 32 keep their size (convolution of 3).
enum class ResNetStem { kLarge, kSmall };

// Basic blocks; 11.7 million parameters with 1000 classes.
std::vector<api::LayerConfig> resnet18(std::int64_t classes, ResNetStem stem);

// Bottleneck blocks with the stride in the middle (v1.5, as torchvision); 25.6 million parameters.
std::vector<api::LayerConfig> resnet50(std::int64_t classes, ResNetStem stem);

}  // namespace fettle::trainer
