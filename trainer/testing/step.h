// An optimiser step from its end to its result, at one learning rate.
#pragma once

#include "trainer/learner.h"

namespace fettle::trainer {

inline Learner::Step end_step(Learner& learner, double learning_rate) {
  Learner::LearningRates rates;
  rates.fill(learning_rate);
  const Status finished = learner.finish_step(rates);
  CHECK(finished.ok(), "no worker is lost in this test");
  return *learner.settle();
}

}  // namespace fettle::trainer
