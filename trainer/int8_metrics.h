// Int8Metrics: the accuracy and the size of the 8-bit network that training.quantize asks for, made
// of the weights as they are. Changes nothing that is learnt.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "trainer/reporter/training_report.h"
#include "trainer/training_parts.h"

namespace fettle::trainer {

struct Int8Result {
  Metrics metrics;            // empty: there was too little memory, which the log says
  std::vector<float> ranges;  // of the network's inputs in 8 bits, for the checkpoint
};

// Errors: the model has nothing to quantise.
Status check_quantize(const api::TrainerConfig& config, const SampleFormat& format);

// All workers call it; each validates its share. `held`: most samples at once. Errors: a worker was
// lost.
Result<Int8Result> measure_int8(const TrainingParts& parts, std::int64_t held);

}  // namespace fettle::trainer
