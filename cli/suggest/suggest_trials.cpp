#include "cli/suggest/suggest_trials.h"

#include <utility>

namespace fettle::cli {
namespace {

bool is_active(TrialState state) {
  return state == TrialState::kWaiting || state == TrialState::kRunning;
}

}  // namespace

std::int64_t SuggestTrials::highest_seq() const {
  return history_.events.empty() ? 0 : history_.events.back().fact.seq;
}

void SuggestTrials::begin(Json parameters, const search::Stage& stage, TrialState state) {
  history_.trials.push_back(std::move(parameters));
  if (promotes_) history_.stages.push_back(stage);  // else empty: no trial pauses
  SuggestTrial trial;
  trial.state = state;
  // With a parent it begins at `stage.rung`: values below it are the parent's, and known.
  trial.next_rung = stage.parent ? static_cast<std::size_t>(stage.rung) : 0;
  trials_.push_back(std::move(trial));
  active_ += is_active(state) ? 1 : 0;
}

void SuggestTrials::set_state(std::size_t trial, TrialState state) {
  active_ += (is_active(state) ? 1 : 0) - (is_active(trials_[trial].state) ? 1 : 0);
  trials_[trial].state = state;
}

void SuggestTrials::resume(std::size_t trial, const search::Stage& stage) {
  history_.stages[trial] = stage;
  set_state(trial, TrialState::kRunning);
}

void SuggestTrials::end(std::size_t trial) {
  if (promotes_) history_.stages[trial].ended = true;
  set_state(trial, TrialState::kEnded);
}

void SuggestTrials::add_fact(std::size_t trial, api::Fact fact) {
  fact.seq = highest_seq() + 1;
  history_.events.push_back({static_cast<std::int64_t>(trial), std::move(fact)});
}

void SuggestTrials::settle(std::size_t trial, TrialState state) {
  set_state(trial, state);
  const api::Fact& fact = history_.events.back().fact;
  SuggestTrial& entry = trials_[trial];
  if (fact.cost) {
    spent_ += *fact.cost - entry.cost;
    entry.cost = *fact.cost;
  }
  if (fact.kind != api::FactKind::kResult) return;
  entry.values = fact.values;
  front_.set(trial, core::losses_of(spec_, fact));
}

std::vector<std::size_t> SuggestTrials::best() const {
  if (front_.empty()) return {};
  return {front_.members().begin(), front_.members().end()};
}

}  // namespace fettle::cli
