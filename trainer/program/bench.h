// Measures the training loop itself (loader, accumulation, kernels, optimiser) on synthetic images
// in memory, for comparison with other frameworks (scripts/bench_trainer.py).
#pragma once

#include <string>

#include "api/trainer/trainer_config.h"
#include "base/result.h"

namespace fettle::trainer {

struct BenchSettings {
  // mlp: 784-512-512-10; cnn: two convolutions, 32 and 64 channels; resnet9, resnet18: images of 32
  // x 32; resnet50: images of 224 x 224; chargpt: 6 layers of width 384, 256 tokens; gpt2: 124
  // million parameters, 1024 tokens.
  std::string model = "mlp";
  double seconds = 3;  // of measurement, after a warm-up
  api::TrainingConfig training;
};

// Returns one line of JSON: images_per_second (tokens_per_second), step_ms_median, data_wait,
// flops_per_second, the known metrics of the GPU (device_metrics.h), and the settings.
Result<std::string> run_bench(const BenchSettings& settings);

}  // namespace fettle::trainer
