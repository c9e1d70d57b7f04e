#include "trainer/step/gradient_messages.h"

namespace fettle::trainer {

// A tied head has no weights of its own: its matrix is the embedding's, and complete with it.
GradientMessages plan_messages(const NetworkPlan& network, std::int64_t gradients,
                               std::int64_t least) {
  GradientMessages plan;
  const std::int64_t first = network.first_trained();
  std::int64_t end = network.decayed;
  for (std::int64_t i = std::ssize(network.layers); i-- > 0;) {
    const Block& weights = network.layers[static_cast<std::size_t>(i)].weights;
    const std::int64_t begin = weights.offset;
    // Skips weights that were already sent. Normalisation weights lie behind `decayed`.
    const bool ends_here = weights.count > 0 && begin < end;
    if (begin < first || !ends_here || (begin > first && end - begin < least)) continue;
    plan.early.push_back({{begin, end}, i});
    end = begin;
  }
  // The first layers' gradients are complete last: alone, they overlap with nothing.
  if (plan.early.size() < 2) return {{}, {first, gradients}};
  plan.rest = {network.decayed, gradients};
  return plan;
}

}  // namespace fettle::trainer
