#include "core/facts/history.h"

#include <algorithm>
#include <charconv>

#include "core/names.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::TrialPtr;

namespace {

// The index in the name of a trial of this Study; absent if the name has none below `count`.
std::optional<std::int64_t> index_of(const std::string& study, const std::string& name,
                                     std::int64_t count) {
  const std::optional<std::int64_t> index = trial_index(study, name);
  return index && *index < count ? index : std::nullopt;
}

template <class Predicate>
const Fact* newest_of(const api::Trial& trial, const Predicate& counts) {
  const Fact* newest = nullptr;
  for (const Fact& fact : trial.status.facts) {
    if (counts(fact) && (newest == nullptr || fact.seq > newest->seq)) newest = &fact;
  }
  return newest;
}

}  // namespace

search::Stage stage_of(const api::Trial& trial, std::int64_t count) {
  const api::SearchOrigin& origin = trial.spec.search;
  search::Stage stage{.bracket = origin.bracket,
                      .rung = origin.rung,
                      .until_step = trial.spec.until_step,
                      .ended = trial.spec.stop.has_value()};
  stage.is_replicate = is_replicate(trial);
  stage.replaces = index_of(trial.spec.study, origin.replaces, count);
  if (!trial.spec.parent) return stage;
  const auto parent = index_of(trial.spec.study, trial.spec.parent->trial, count);
  if (parent) stage.parent = search::Origin{*parent, trial.spec.parent->step};
  return stage;
}

std::int64_t next_index(const std::vector<TrialPtr>& trials, std::int64_t created) {
  return trials.empty() ? created : std::max(created, trials.back()->spec.index + 1);
}

std::int64_t completed_step(const api::Trial& trial) {
  return trial.status.runs.empty() ? trial.spec.until_step : trial.status.runs.back().until_step;
}

bool counts_steps(const api::StudySpec& spec) { return spec.resource.max > 1; }

std::int64_t reached_step(const api::TrialStatus& status, std::int64_t asked) {
  if (!status.report) return 0;
  const api::Report& report = *status.report;
  const std::vector<api::RunRecord>& runs = status.runs;
  // A promoted trial still carries the final report of the run before, which no longer counts.
  const std::int64_t before = runs.size() > 1 ? runs[runs.size() - 2].last_step : 0;
  const bool is_final = report.final_result && report.step > before;
  return is_final ? std::max(report.step, asked) : report.step;
}

bool is_active(const api::Trial& trial) {
  const api::TrialPhase phase = trial.status.phase;
  if (!api::is_terminal(phase)) return true;
  if (phase != api::TrialPhase::kCompleted) return false;
  if (trial.spec.stop) return trial.spec.stop->reason == kNoResult;
  return trial.spec.until_step > completed_step(trial);
}

bool is_done(const api::Trial& trial) {
  if (!api::is_terminal(trial.status.phase)) return false;
  const bool has_result = newest_fact(trial, FactKind::kResult) != nullptr;
  const bool was_stopped = newest_fact(trial, FactKind::kStopped) != nullptr;
  switch (trial.status.phase) {
    case api::TrialPhase::kCompleted:  // at a rung, unless it has a result
      // Paused and then stopped. A trial that is to fail (kNoResult) is active until it has failed.
      return has_result || (was_stopped && trial.spec.stop && !is_active(trial));
    case api::TrialPhase::kFailed:
      return newest_fact(trial, FactKind::kFailed) != nullptr;
    default:  // Stopped
      // The newest Stopped fact may be that of an earlier pause, before a promotion.
      return was_stopped && ends_of(trial) >= legs_of(trial);
  }
}

std::int64_t legs_of(const api::Trial& trial) {
  const api::SearchOrigin& origin = trial.spec.search;
  const bool sent_on = trial.status.phase == api::TrialPhase::kCompleted &&
                       trial.spec.until_step > completed_step(trial);
  return origin.rung - origin.bracket + (sent_on ? 0 : 1);
}

std::int64_t ends_of(const api::Trial& trial) {
  return std::ranges::count_if(trial.status.facts,
                               [](const Fact& fact) { return fact.kind != FactKind::kRung; });
}

const Fact* newest_fact(const api::Trial& trial, FactKind kind) {
  return newest_of(trial, [kind](const Fact& fact) { return fact.kind == kind; });
}

const Fact* newest_end(const api::Trial& trial) {
  return newest_of(trial, [](const Fact& fact) { return fact.kind != FactKind::kRung; });
}

TrialPtr find_trial(const std::vector<TrialPtr>& trials, const std::string& name) {
  std::int64_t index = -1;  // stays so if the name does not end with a number
  const char* end = name.data() + name.size();
  std::from_chars(name.data() + name.find_last_of('-') + 1, end, index);  // npos + 1 is 0
  const auto found = std::ranges::partition_point(
      trials, [&](const TrialPtr& t) { return t->spec.index < index; });
  if (found != trials.end() && (*found)->metadata.name == name) return *found;
  const auto named = [&](const TrialPtr& trial) { return trial->metadata.name == name; };
  const auto other = std::ranges::find_if(trials, named);
  return other == trials.end() ? nullptr : *other;
}

}  // namespace fettle::core
