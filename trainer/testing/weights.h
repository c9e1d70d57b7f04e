// All weights of a learner, for comparing trainings in tests.
#pragma once

#include <span>
#include <vector>

#include "base/check.h"
#include "trainer/step/learner.h"

namespace fettle::trainer {

// The masters (rank 0's copy if no worker has all of them), then this worker's 16-bit copies, if it
// has any. All workers call it.
inline std::vector<float> weights_of(Learner& learner, Collective& world) {
  Parameters& parameters = learner.network().parameters();
  std::vector<float> all = parameters.weights.download();
  if (parameters.kept) {
    const auto whole = learner.whole_weights();
    CHECK(whole.ok(), "no worker is lost in this test");
    all = *whole;
    all.resize(static_cast<std::size_t>(parameters.count));
    CHECK(world.broadcast(std::as_writable_bytes(std::span(all))).ok(), "nor here");
  }
  for (const std::uint16_t copy : parameters.rounded.download()) {
    all.push_back(static_cast<float>(copy));  // its bits: only equality matters
  }
  return all;
}

}  // namespace fettle::trainer
