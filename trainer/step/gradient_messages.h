// GradientMessages: the messages in which workers all-reduce the gradients of a step, and the
// moment from which each can be sent.
//
// The backward pass runs from the last layer to the first, and the weights lie in the order of the
// layers, so the gradients of the weights become complete from their end. They are cut into
// messages there, and sent while earlier layers are still at work. The messages depend on the
// network alone, never on the worker or its backend, so all workers send the same. A pure value and
// function; usable from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/batching.h"
#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Floats of Parameters::gradients.
struct EarlyMessage {
  Range values;
  std::int64_t layer = 0;  // complete when this layer's backward pass is done
  bool operator==(const EarlyMessage&) const = default;
};

struct GradientMessages {
  std::vector<EarlyMessage> early;  // in the order in which they become complete
  Range rest;  // sent at the end of the step; of all trained layers if `early` is empty
};

// 1 MiB: the fixed cost of a message is small next to its bytes.
inline constexpr std::int64_t kLeastEarlyFloats = (std::int64_t{1} << 20) / sizeof(float);

// `gradients`: elements of Parameters::gradients. Early messages have at least `least` floats,
// except that of the first layers; a network too small for two early messages has none.
GradientMessages plan_messages(const NetworkPlan& network, std::int64_t gradients,
                               std::int64_t least = kLeastEarlyFloats);

}  // namespace fettle::trainer
