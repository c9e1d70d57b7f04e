// Int8Metrics: the accuracy and the size of the 8-bit network that training.quantize asks for, made
// of the weights as they are; and the ranges with which quantisation-aware training begins.
#pragma once

#include <cstdint>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/data/sample_format.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/memory_plan.h"
#include "trainer/training_parts.h"

namespace fettle::trainer {

struct Int8Result {
  Metrics metrics;            // empty: there was too little memory, which the log says
  std::vector<float> ranges;  // of the network's inputs in 8 bits, for the checkpoint
};

// Bytes that the 8-bit network takes beside the training; 0 if the configuration asks for none.
// Errors: the model has nothing to quantise.
Result<std::int64_t> int8_network_bytes(const api::TrainerConfig& config,
                                        const SampleFormat& format, const TrainingWorld& world);

// From now on the training computes on the grids of 8-bit integers. Their ranges are the
// checkpoint's; without any they are calibrated with the weights as they are. All workers call it
// between steps. Errors: too little memory for the calibration; a worker was lost.
Status begin_quantized_training(const TrainingParts& parts, std::int64_t held);

// All workers call it; each validates its share. A training on the grids gives its ranges, another
// one has them calibrated; nothing that is learnt changes. `held`: most samples at once. Errors: a
// worker was lost.
Result<Int8Result> measure_int8(const TrainingParts& parts, std::int64_t held);

}  // namespace fettle::trainer
