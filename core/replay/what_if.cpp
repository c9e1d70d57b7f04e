#include "core/replay/what_if.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "api/study/algorithm.h"
#include "core/facts/facts.h"
#include "core/facts/history.h"
#include "core/study/ledger.h"
#include "core/study/problem.h"
#include "search/search.h"

namespace fettle::core {

using api::Fact;
using api::FactKind;
using api::Trial;
using api::TrialPtr;

namespace {

// The recorded times at which a trial was at a step: milliseconds by step.
std::map<std::int64_t, std::int64_t> moments_of(const Trial& trial) {
  std::map<std::int64_t, std::int64_t> moments;
  if (!trial.status.runs.empty()) {
    const api::RunRecord& first = trial.status.runs.front();
    moments[0] = first.running_ms > 0 ? first.running_ms : first.started_ms;
  }
  for (const Fact& fact : trial.status.facts) moments[fact.step] = fact.at_ms;
  return moments;
}

// The time at which the trial was at `step`: interpolated between recorded times, outside of them
// the nearest; 0 if none is recorded.
std::int64_t moment_of(const std::map<std::int64_t, std::int64_t>& moments, std::int64_t step) {
  const auto after = moments.lower_bound(step);
  if (after == moments.end()) return moments.empty() ? 0 : moments.rbegin()->second;
  if (after->first == step || after == moments.begin()) return after->second;
  const auto before = std::prev(after);
  const double share =
      static_cast<double>(step - before->first) / static_cast<double>(after->first - before->first);
  const auto between = static_cast<double>(after->second - before->second);
  return before->second + static_cast<std::int64_t>(share * between);
}

// The facts that the trials would have had at the rungs of other rules.
std::vector<search::Event> facts_under(const api::Study& study, const api::EarlyStopping& rules,
                                       const std::vector<TrialPtr>& trials) {
  const std::vector<std::int64_t> rungs =
      search::rung_steps(study.spec.algorithm, rules, study.spec.resource);
  std::vector<search::Event> events;
  for (const TrialPtr& trial : trials) {
    const auto moments = moments_of(*trial);
    Trial unjudged = *trial;
    unjudged.status.facts.clear();  // so that no rung counts as recorded
    for (Fact& fact : unrecorded_facts(study, unjudged, rungs, /*now_ms=*/0)) {
      fact.at_ms = moment_of(moments, fact.step);
      events.push_back({trial->spec.index, std::move(fact)});
    }
  }
  std::ranges::stable_sort(events, [](const search::Event& a, const search::Event& b) {
    return std::tie(a.fact.at_ms, a.trial) < std::tie(b.fact.at_ms, b.trial);
  });
  return events;
}

bool was_stopped_early(const Trial& trial) {
  return trial.spec.stop && trial.spec.stop->reason == kEarlyStopped;
}

std::string best_of(const api::Study& study, const std::vector<TrialPtr>& trials) {
  const std::vector<api::BestTrial> best = Ledger(study, trials).best();
  return best.empty() ? "" : best.front().trial;
}

std::int64_t reached(const Trial& trial) {
  return trial.status.report ? trial.status.report->step : 0;
}

}  // namespace

Status check_what_if_algorithm(const api::Study& study, api::AlgorithmKind algorithm) {
  const api::AlgorithmKind own = study.spec.algorithm.name;
  const bool here = api::replaces_trials(own);
  if (!here && !api::replaces_trials(algorithm)) return success();
  return invalid("with algorithm " + name_of(here ? own : algorithm) +
                 " trials take over from each other, so that what " + name_of(algorithm) +
                 " would have suggested is another search from the first replacement on; it "
                 "cannot be told from these trials. Without --algorithm the Study's own decisions "
                 "are made again");
}

WhatIf simulate_stopping(const api::Study& study, const api::EarlyStopping& rules,
                         const std::vector<TrialPtr>& trials) {
  WhatIf out;
  std::map<std::int64_t, const Trial*> by_index;
  for (const TrialPtr& trial : trials) by_index[trial->spec.index] = trial.get();
  const search::Problem problem = problem_of(study);
  search::History known = history_of(study, trials);
  known.events.clear();  // added below in the order in which they would have been learnt
  std::set<std::int64_t> stopped;
  for (search::Event& event : facts_under(study, rules, trials)) {
    if (stopped.count(event.trial) > 0) continue;
    event.fact.seq = std::ssize(known.events) + 1;
    known.events.push_back(event);
    if (event.fact.kind != FactKind::kRung) continue;
    const search::Judgement judgement = search::judge(problem, rules, known, event.trial);
    if (judgement.verdict == search::Verdict::kContinue) continue;
    const Trial& trial = *by_index.at(event.trial);
    out.stops.push_back({trial.metadata.name, event.fact.step, reached(trial), judgement.reason});
    out.saved += std::max<std::int64_t>(reached(trial) - event.fact.step, 0);
    stopped.insert(event.trial);
    // The planner would have recorded the trial's end next, with the values at this rung.
    event.fact.kind = FactKind::kStopped;
    event.fact.seq = std::ssize(known.events) + 1;
    known.events.push_back(std::move(event));
  }
  std::vector<TrialPtr> left;
  for (const TrialPtr& trial : trials) {
    out.steps += reached(*trial);
    if (stopped.count(trial->spec.index) > 0) continue;
    left.push_back(trial);
    if (was_stopped_early(*trial)) ++out.unknown;
  }
  out.best = best_of(study, trials);
  out.best_left = best_of(study, left);  // the ledger takes the others for deleted
  return out;
}

}  // namespace fettle::core
