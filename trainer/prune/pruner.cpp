#include "trainer/prune/pruner.h"

#include <span>
#include <vector>

#include "api/trial/metric_names.h"

namespace fettle::trainer {

namespace metric = api::metric;

Metrics Pruner::metrics() const {
  const auto dropped = static_cast<double>(dropped_);
  const auto all = static_cast<double>(learner_.network().plan().trained());
  const auto prunable = static_cast<double>(pruning_.prunable());
  return {{metric::kSparsity, prunable == 0 ? 0 : dropped / prunable},
          {metric::kNonzeroParameters, all - dropped}};
}

Status Pruner::renew(std::optional<std::int64_t> step) {
  FETTLE_ASSIGN(const std::vector<float> weights, learner_.whole_weights());
  PruneMask mask(static_cast<std::size_t>(pruning_.mask_words()));
  if (collective_.rank() == 0) {
    mask = step ? pruning_.mask_at(*step, weights) : pruning_.mask_of_zeros(weights);
  }
  FETTLE_TRY(collective_.broadcast(std::as_writable_bytes(std::span(mask))));
  dropped_ = pruning_.dropped_by(mask);
  learner_.set_mask(mask);
  return success();
}

}  // namespace fettle::trainer
