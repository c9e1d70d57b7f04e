// Optimiser steps of a learner without a Training: their shape, and one from its end to its result.
#pragma once

#include "trainer/step/learner.h"

namespace fettle::trainer {

// The configured batch, of which each worker holds at most this number of samples at once.
inline StepShape shape_of_step(const api::TrainingConfig& config, std::int64_t held,
                               std::int64_t world_size = 1) {
  const std::int64_t batch = global_batch_of(config, world_size);
  return {.configured_batch = batch, .global_batch = batch, .dealing = {.limit = held}};
}

inline Learner::Step end_step(Learner& learner, double learning_rate) {
  Learner::LearningRates rates;
  rates.fill(learning_rate);
  const Status finished = learner.finish_step(rates);
  CHECK(finished.ok(), "no worker is lost in this test");
  return *learner.settle();
}

}  // namespace fettle::trainer
