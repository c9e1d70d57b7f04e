// Measures the training loop itself (loader, accumulation, kernels, optimiser) on synthetic images
// in memory, for comparison with other frameworks (scripts/bench_trainer.py).
#pragma once

#include <string>

#include "api/trainer_config.h"
#include "base/result.h"

namespace fettle::trainer {

struct BenchSettings {
  std::string model = "mlp";  // mlp: 784-512-512-10; cnn: two convolutions, 32 and 64 channels
  double seconds = 3;         // of measurement, after a warm-up
  api::TrainingConfig training;
};

// One line of JSON: images_per_second, step_ms_median, gflops, data_wait and what was measured.
Result<std::string> run_bench(const BenchSettings& settings);

}  // namespace fettle::trainer
