#include "core/replay/replay_rungs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/fields/enum_names.h"
#include "core/facts/history.h"
#include "core/replay/replay_history.h"
#include "core/study/problem.h"
#include "search/rungs/promotion.h"
#include "search/rungs/rung_table.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

// At one basis promotions come before new trials, and the last promotions after them.
class PromotionReplay {
 public:
  PromotionReplay(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out)
      : problem_(problem_of(study)),
        steps_(search::ladder_of(problem_)),
        history_(study, trials),
        out_(out) {}

  void run(const std::vector<TrialPtr>& trials) {
    for (auto& [basis, decisions] : recorded_decisions(trials)) {
      history_.learn(basis);
      std::vector<RecordedPromotion> promotions = decisions.promotions;
      promote(promotions, /*last=*/false);
      for (const Trial* trial : decisions.created) create(*trial);
      promote(promotions, /*last=*/true);
      for (const RecordedPromotion& left : promotions) {
        differ(*left.trial, history_.words(left), "no trial is promoted");
        history_.promote(left);
      }
    }
  }

 private:
  // Takes the promotions that the rule makes here out of `recorded`. If the rule names another
  // trial, that is a difference, and the replay continues from the recorded promotion.
  void promote(std::vector<RecordedPromotion>& recorded, bool last) {
    while (!recorded.empty()) {
      const auto again = search::next_promotion(problem_, history_.known(), last);
      if (!again) return;  // the rest are last promotions or differences (run)
      auto same = find_same(recorded, *again);
      ++out_.promotions;
      if (same == recorded.end()) {
        same = recorded.begin();
        differ(*same->trial, history_.words(*same), history_.words(*again));
      }
      history_.promote(*same);
      recorded.erase(same);
    }
  }

  void create(const Trial& trial) {
    history_.add_deleted_before(trial.spec.index);  // so that `trial` gets its own index
    const search::History& known = history_.known();
    if (is_replicate(trial)) return begin_replicate(trial);
    // A trial that a client prescribes waits for no promotion.
    const auto waiting = is_prescribed(trial)
                             ? std::nullopt
                             : search::next_promotion(problem_, known, /*last=*/false);
    const search::Stage first = search::first_stages(problem_, known, 1).front();
    const std::int64_t bracket = trial.spec.search.bracket;
    if (waiting) {
      differ(trial, "a new trial", history_.words(*waiting));
    } else if (first.bracket != bracket) {
      differ(trial, "begins at rung " + std::to_string(bracket),
             "begins at rung " + std::to_string(first.bracket));
    }
    const std::int64_t until_step = step_of_rung(steps_, bracket);
    history_.begin(trial, {.bracket = bracket, .rung = bracket, .until_step = until_step});
  }

  // It begins at the last rung, once no other trial is to be promoted (replay_replicates.h has the
  // rest).
  void begin_replicate(const Trial& trial) {
    const std::string recorded = "repeats " + trial.spec.search.replicates;
    const auto waiting = search::next_promotion(problem_, history_.known(), /*last=*/true);
    if (waiting) differ(trial, recorded, history_.words(*waiting));
    const std::int64_t rung = trial.spec.search.bracket;
    history_.begin(
        trial,
        {.bracket = rung, .rung = rung, .until_step = trial.spec.until_step, .is_replicate = true});
  }

  void differ(const Trial& trial, std::string recorded, std::string decided) {
    out_.differences.push_back(history_.difference(trial, std::move(recorded), std::move(decided)));
  }

  const search::Problem problem_;
  const std::vector<std::int64_t> steps_;
  ReplayHistory history_;
  Replay& out_;
};

}  // namespace

void replay_promotions(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out) {
  const search::Problem problem = problem_of(study);
  if (!search::promotes(problem) || api::replaces_trials(problem.algorithm.name)) return;
  PromotionReplay(study, trials, out).run(trials);
}

}  // namespace fettle::core
