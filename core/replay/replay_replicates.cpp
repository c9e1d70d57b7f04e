#include "core/replay/replay_replicates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/facts/history.h"
#include "core/names.h"
#include "core/study/best.h"
#include "core/study/ledger.h"
#include "core/study/replicates.h"

namespace fettle::core {

using api::FactKind;
using api::Trial;
using api::TrialPtr;

namespace {

class ReplicateReplay {
 public:
  ReplicateReplay(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out)
      : study_(study), events_(history_of(study, trials).events), out_(out) {
    for (const TrialPtr& trial : trials) by_index_[trial->spec.index] = trial.get();
  }

  void run() {
    std::int64_t next_index = 0;
    for (const auto& [index, trial] : by_index_) {
      gap_ = gap_ || index != next_index;
      next_index = index + 1;
      if (is_replicate(*trial)) decide(*trial);
    }
  }

 private:
  // Learns the results of the search up to `basis`, which rises from call to call.
  void learn(std::int64_t basis) {
    for (; next_ < events_.size() && events_[next_].fact.seq <= basis; ++next_) {
      const search::Event& event = events_[next_];
      const auto trial = by_index_.find(event.trial);
      if (trial == by_index_.end() || is_replicate(*trial->second)) continue;
      // An end or a pause: the end of a leg (ends_of in core/facts/history.h).
      if (event.fact.kind != FactKind::kRung) ++ends_[event.trial];
      if (event.fact.kind != FactKind::kResult) continue;
      const std::optional<search::Losses> losses = losses_of(study_.spec, event.fact);
      board_.rank(event.trial, losses ? std::optional(losses->front()) : std::nullopt);
    }
  }

  void decide(const Trial& trial) {
    ++out_.replicates;
    learn(trial.spec.search.basis);
    const std::optional<std::int64_t> recorded = repeated_by(trial);
    const auto leader = recorded ? by_index_.find(*recorded) : by_index_.end();
    const std::string decided = decision(trial);
    if (!gap_ && decided != words(trial.spec.search.replicates)) {
      differ(trial, words(trial.spec.search.replicates), decided);
    } else if (leader != by_index_.end() &&
               leader->second->spec.parameters != trial.spec.parameters) {
      differ(trial, words(leader->second->metadata.name) + " with " + trial.spec.parameters.dump(),
             leader->second->spec.parameters.dump());
    }
    if (recorded) board_.count_replicates(*recorded, 1);
  }

  // The decision of the rule, given the trials before this one.
  std::string decision(const Trial& replicate) const {
    if (const Trial* active = still_active(replicate)) {
      return "no trial is repeated before " + active->metadata.name + " has ended";
    }
    const auto next = study_.spec.replicates ? board_.next(*study_.spec.replicates) : std::nullopt;
    return next ? words(trial_name(study_.metadata.name, *next)) : "no trial is repeated";
  }

  // A trial ends once, and once more after each promotion.
  const Trial* still_active(const Trial& replicate) const {
    for (const auto& [index, trial] : by_index_) {
      if (index >= replicate.spec.index) break;
      if (is_replicate(*trial)) continue;  // replicates run side by side
      const std::int64_t legs =
          1 + std::ranges::count_if(trial->spec.search.promotions, [&](const auto& promotion) {
            return promotion.basis < replicate.spec.search.basis;
          });
      const auto ends = ends_.find(index);
      if (ends == ends_.end() || ends->second < legs) return trial;
    }
    return nullptr;
  }

  static std::string words(const std::string& trial) { return "repeats " + trial; }

  void differ(const Trial& trial, std::string recorded, std::string decided) {
    out_.differences.push_back(
        {trial.metadata.name, trial.spec.search.basis, std::move(recorded), std::move(decided)});
  }

  const api::Study& study_;
  const std::vector<search::Event> events_;
  std::map<std::int64_t, const Trial*> by_index_;
  Leaderboard board_;
  std::map<std::int64_t, std::int64_t> ends_;  // of each trial of the search, so far
  std::size_t next_ = 0;                       // of events_
  bool gap_ = false;                           // a trial was deleted before this one
  Replay& out_;
};

}  // namespace

void replay_replicates(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out) {
  const bool any =
      std::ranges::any_of(trials, [](const TrialPtr& trial) { return is_replicate(*trial); });
  if (any) ReplicateReplay(study, trials, out).run();
}

}  // namespace fettle::core
