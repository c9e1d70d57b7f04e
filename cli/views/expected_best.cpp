#include "cli/views/expected_best.h"

#include <utility>

#include "core/study/best.h"
#include "core/study/ledger.h"
#include "search/gp/recommendation.h"

namespace fettle::cli {

void expect_best(RunView& view) {
  std::vector<api::BestTrial>& best = view.study.status.best;
  // Replicates tell more than a model.
  if (best.size() != 1 || best.front().replicates) return;
  const core::Ledger ledger(view.study, view.trials);
  const auto found = search::gp::recommend(ledger.problem(), ledger.history());
  if (!found) return;
  view.expected_best = ExpectedBest{found->expected, found->noise, {}};
  if (found->trial == found->looks_best) return;
  const std::size_t position = ledger.position_of(found->trial);
  api::BestTrial taken = core::best_entry(*ledger.trials()[position], api::FactKind::kResult);
  view.expected_best->luckier = std::exchange(best.front(), std::move(taken));
}

}  // namespace fettle::cli
