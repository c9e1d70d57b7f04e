#include "core/replay_rungs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/history.h"
#include "core/names.h"
#include "core/plan.h"
#include "search/rung_table.h"
#include "search/schedule.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

// A promotion that was recorded.
struct Recorded {
  const Trial* trial = nullptr;
  std::int64_t until_step = 0;
};

// The decisions that rest on the same facts: promotions come before new trials, and those of the
// end after them.
struct Decisions {
  std::vector<Recorded> promotions;
  std::vector<const Trial*> created;  // by index
};

class PromotionReplay {
 public:
  PromotionReplay(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out)
      : study_(study),
        problem_(problem_of(study)),
        steps_(search::ladder_of(problem_)),
        whole_(history_of(study, trials)),
        out_(out) {
    for (const TrialPtr& trial : trials) {
      by_index_[trial->spec.index] = trial.get();
      decisions_[trial->spec.search.basis].created.push_back(trial.get());
      for (const api::TrialPromotion& promotion : trial->spec.search.promotions) {
        decisions_[promotion.basis].promotions.push_back({trial.get(), promotion.until_step});
      }
    }
  }

  void run() {
    for (auto& [basis, decisions] : decisions_) {
      learn(basis);
      promote(decisions.promotions, /*last=*/false);
      for (const Trial* trial : decisions.created) create(*trial);
      promote(decisions.promotions, /*last=*/true);
      for (const Recorded& left : decisions.promotions) {
        differ(*left.trial, basis, words(left), "nobody goes on");
        carry_out(left);
      }
    }
  }

 private:
  void learn(std::int64_t basis) {
    basis_ = basis;
    for (; events_ < whole_.events.size() && whole_.events[events_].fact.seq <= basis; ++events_) {
      const search::Event& event = whole_.events[events_];
      const bool is_known = event.trial < static_cast<std::int64_t>(known_.trials.size());
      if (is_known) known_.events.push_back(event);  // a deleted trial's failure comes with it
    }
    for (std::size_t i = 0; i < known_.stages.size(); ++i) {
      const auto trial = by_index_.find(static_cast<std::int64_t>(i));
      if (trial == by_index_.end() || !trial->second->spec.stop) continue;
      known_.stages[i].ended = trial->second->spec.stop->basis < basis;
    }
  }

  // Those of `recorded` that the rule makes here, which are taken out of it. Where it names another
  // one instead, that is a difference, and the recorded one counts from there on.
  void promote(std::vector<Recorded>& recorded, bool last) {
    while (!recorded.empty()) {
      const auto again = search::next_promotion(problem_, known_, last);
      if (!again) return;
      auto same = std::find_if(recorded.begin(), recorded.end(), [&](const Recorded& one) {
        return one.trial->spec.index == again->trial && one.until_step == again->stage.until_step;
      });
      ++out_.promotions;
      if (same == recorded.end()) {
        same = recorded.begin();
        differ(*same->trial, basis_, words(*same), words(*again));
      }
      carry_out(*same);
      recorded.erase(same);
    }
  }

  void create(const Trial& trial) {
    add_deleted_before(trial.spec.index);
    const auto waiting = search::next_promotion(problem_, known_, /*last=*/false);
    const search::Stage first = search::first_stages(problem_, known_, 1).front();
    const std::int64_t bracket = trial.spec.search.bracket;
    if (waiting) {
      differ(trial, basis_, "a new trial", words(*waiting));
    } else if (first.bracket != bracket) {
      differ(trial, basis_, "begins at rung " + std::to_string(bracket),
             "begins at rung " + std::to_string(first.bracket));
    }
    known_.trials.push_back(trial.spec.parameters);
    known_.stages.push_back({.bracket = bracket, .rung = bracket, .until_step = step(bracket)});
  }

  // Trials of which nothing is left, as history_of has them.
  void add_deleted_before(std::int64_t index) {
    while (static_cast<std::int64_t>(known_.trials.size()) < index) {
      const auto deleted = static_cast<std::int64_t>(known_.trials.size());
      known_.trials.push_back(Json::object());
      known_.stages.emplace_back();
      for (const search::Event& event : whole_.events) {
        if (event.trial == deleted) known_.events.push_back(event);
      }
    }
  }

  void carry_out(const Recorded& promotion) {
    search::Stage& stage = known_.stages[static_cast<std::size_t>(promotion.trial->spec.index)];
    ++stage.rung;
    stage.until_step = promotion.until_step;
  }

  // Of a rung that the Study as it is now may not have.
  std::int64_t step(std::int64_t rung) const {
    const auto last = static_cast<std::int64_t>(steps_.size()) - 1;
    return steps_[static_cast<std::size_t>(std::clamp<std::int64_t>(rung, 0, last))];
  }

  void differ(const Trial& trial, std::int64_t basis, std::string recorded, std::string decided) {
    out_.differences.push_back(
        {trial.metadata.name, basis, std::move(recorded), std::move(decided)});
  }

  std::string words(const Recorded& promotion) const {
    return going_on(promotion.trial->metadata.name, promotion.until_step);
  }
  std::string words(const search::Promotion& promotion) const {
    return going_on(trial_name(study_.metadata.name, promotion.trial), promotion.stage.until_step) +
           ": " + promotion.reason;
  }
  std::string going_on(const std::string& trial, std::int64_t step) const {
    return trial + " goes on to " + study_.spec.resource.unit + " " + std::to_string(step);
  }

  const api::Study& study_;
  const search::Problem problem_;
  const std::vector<std::int64_t> steps_;
  const search::History whole_;
  Replay& out_;
  std::map<std::int64_t, const Trial*> by_index_;
  std::map<std::int64_t, Decisions> decisions_;  // by basis
  search::History known_;
  std::size_t events_ = 0;  // of whole_, that were learnt
  std::int64_t basis_ = 0;
};

}  // namespace

void promote_again(const api::Study& study, const std::vector<TrialPtr>& trials, Replay& out) {
  if (search::promotes(problem_of(study))) PromotionReplay(study, trials, out).run();
}

}  // namespace fettle::core
