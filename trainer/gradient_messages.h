// GradientMessages: the messages in which workers all-reduce the gradients of a step, and from when
// on each can leave.
//
// The backward pass goes from the last layer to the first, and the weights lie in the order of the
// layers, so the gradients of the weights become complete from their end. Cut up there, they leave
// while the layers before are still at work. The messages depend on the network alone, never on the
// worker or its backend, so that all workers send the same. A pure value and function; usable from
// any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Floats of Parameters::gradients.
struct EarlyMessage {
  Range values;
  std::int64_t layer = 0;  // complete when its backward pass is done
  bool operator==(const EarlyMessage&) const = default;
};

struct GradientMessages {
  std::vector<EarlyMessage> early;  // in the order in which they become complete
  Range rest;                       // with the end of the step: all of it where `early` is empty
};

// A MiB: what a message costs besides its bytes is small next to them.
inline constexpr std::int64_t kLeastEarlyFloats = (std::int64_t{1} << 20) / sizeof(float);

// `gradients`: elements of Parameters::gradients. Early messages have at least `least` floats, but
// for that of the first layers; a network too small for two of them has none.
GradientMessages plan_messages(const NetworkPlan& network, std::int64_t gradients,
                               std::int64_t least = kLeastEarlyFloats);

}  // namespace fettle::trainer
