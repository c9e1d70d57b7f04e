#include "core/replay/replay_history.h"

#include <algorithm>
#include <utility>

#include "core/names.h"
#include "core/study/ledger.h"

namespace fettle::core {

using api::Trial;
using api::TrialPtr;

namespace {

std::string promotion_words(const api::Study& study, const std::string& trial, std::int64_t step) {
  return trial + " continues to " + study.spec.resource.unit + " " + std::to_string(step);
}

}  // namespace

std::vector<RecordedPromotion>::iterator find_same(std::vector<RecordedPromotion>& recorded,
                                                   const search::Promotion& decided) {
  return std::ranges::find_if(recorded, [&](const RecordedPromotion& one) {
    return one.trial->spec.index == decided.trial && one.until_step == decided.stage.until_step;
  });
}

std::int64_t step_of_rung(const std::vector<std::int64_t>& ladder, std::int64_t rung) {
  const auto last = std::ssize(ladder) - 1;
  return ladder[static_cast<std::size_t>(std::clamp<std::int64_t>(rung, 0, last))];
}

std::map<std::int64_t, DecisionsOf> recorded_decisions(const std::vector<TrialPtr>& trials) {
  std::map<std::int64_t, DecisionsOf> out;
  for (const TrialPtr& trial : trials) {
    out[trial->spec.search.basis].created.push_back(trial.get());
    for (const api::TrialPromotion& promotion : trial->spec.search.promotions) {
      out[promotion.basis].promotions.push_back({trial.get(), promotion.until_step});
    }
  }
  return out;
}

ReplayHistory::ReplayHistory(const api::Study& study, const std::vector<TrialPtr>& trials)
    : study_(study), whole_(history_of(study, trials)) {
  for (const TrialPtr& trial : trials) by_index_[trial->spec.index] = trial.get();
}

void ReplayHistory::learn(std::int64_t basis) {
  basis_ = basis;
  for (; events_ < whole_.events.size() && whole_.events[events_].fact.seq <= basis; ++events_) {
    const search::Event& event = whole_.events[events_];
    const bool is_known = event.trial < std::ssize(known_.trials);
    if (is_known) known_.events.push_back(event);  // a deleted trial's failure comes with it
  }
  for (std::size_t i = 0; i < known_.stages.size(); ++i) {
    const auto trial = by_index_.find(static_cast<std::int64_t>(i));
    if (trial == by_index_.end() || !trial->second->spec.stop) continue;
    // A stop that rests on this basis is decided here, and known from the next one on.
    known_.stages[i].ended = trial->second->spec.stop->basis < basis;
  }
}

void ReplayHistory::begin(const Trial& trial, const search::Stage& stage) {
  add_deleted_before(trial.spec.index);
  known_.trials.push_back(trial.spec.parameters);
  known_.stages.push_back(stage);
}

void ReplayHistory::add_deleted_before(std::int64_t index) {
  while (std::ssize(known_.trials) < index) {
    const auto deleted = std::ssize(known_.trials);
    known_.trials.push_back(Json::object());
    known_.stages.emplace_back();
    for (const search::Event& event : whole_.events) {
      if (event.trial == deleted) known_.events.push_back(event);
    }
  }
}

void ReplayHistory::promote(const RecordedPromotion& promotion) {
  search::Stage& stage = known_.stages[static_cast<std::size_t>(promotion.trial->spec.index)];
  ++stage.rung;
  stage.until_step = promotion.until_step;
}

Difference ReplayHistory::difference(const Trial& trial, std::string recorded,
                                     std::string decided) const {
  return {trial.metadata.name, basis_, std::move(recorded), std::move(decided)};
}

std::string ReplayHistory::words(const RecordedPromotion& promotion) const {
  return promotion_words(study_, promotion.trial->metadata.name, promotion.until_step);
}

std::string ReplayHistory::words(const search::Promotion& promotion) const {
  return promotion_words(study_, trial_name(study_.metadata.name, promotion.trial),
                         promotion.stage.until_step) +
         ": " + promotion.reason;
}

}  // namespace fettle::core
