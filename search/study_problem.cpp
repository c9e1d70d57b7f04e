#include "search/study_problem.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"
#include "search/auto.h"
#include "search/space/space.h"

namespace fettle::search {
namespace {

constexpr api::AlgorithmKind kAuto = api::AlgorithmKind::kAuto;

std::optional<api::AlgorithmKind> algorithm_of(const api::SearchPeriod& period) {
  return api::from_string<api::AlgorithmKind>(period.algorithm);
}

Problem unsettled(const api::StudySpec& spec) {
  Problem out;
  out.parameters = spec.parameters;
  out.objectives = spec.objectives;
  out.algorithm = spec.algorithm;
  out.resource = spec.resource;
  out.max_trials = spec.budget.trials;
  out.parallelism = spec.budget.parallelism;
  out.early_stopping = spec.early_stopping;
  if (spec.warm_start) out.first_points = spec.warm_start->points;
  return out;
}

// Applies the decisions of `auto` about steps from the beginning of the Study.
void keep_steps(const api::SearchPeriod& period, Problem& out) {
  const bool is_set = out.early_stopping.has_value();
  if (is_set && out.early_stopping->name == api::StoppingKind::kNone) out.early_stopping.reset();
  if (out.algorithm.name != kAuto) return;
  out.fidelity = period.steps;
  // Empty, and so no rule, if `auto` added none.
  const auto rule = api::from_string<api::StoppingKind>(period.early_stopping);
  if (!is_set && rule) out.early_stopping.emplace().name = *rule;
  const auto algorithm = algorithm_of(period);
  if (algorithm && api::pauses_trials(*algorithm)) out.algorithm.name = *algorithm;
}

}  // namespace

Problem problem_of(const api::StudySpec& spec, api::Place place) {
  Problem out = unsettled(spec);
  // The built-in trainer always writes checkpoints. For other images the Study says so by naming a
  // place for them.
  const bool writes = spec.trial.trainer || spec.trial.checkpoints;
  const bool resumes = writes && api::checkpoints_survive(spec, place);
  const bool limits_work = spec.budget.wall_time || spec.budget.gpu_hours;
  settle_fidelity(out, {.resumes = resumes,
                        .limits_work = limits_work,
                        .few_trials = spec.budget.trials <= kFewTrials});
  return out;
}

Problem problem_of(const api::StudySpec& spec, const api::SearchPeriod& period) {
  if (!is_known(period)) {
    // The place only decides whether checkpoints survive, which the period knows.
    const bool survive = period.durable_checkpoints.value_or(true);
    return problem_of(spec, survive ? api::Place::kLocal : api::Place::kCluster);
  }
  Problem out = unsettled(spec);
  keep_steps(period, out);
  out.max_trials = period.trials;
  out.parallelism = period.parallelism;
  out.revision = period.revision.value_or(kFirstRevision);
  const auto algorithm = algorithm_of(period);
  // is_known() has seen an algorithm. It is `auto` itself if the space was invalid (settle()).
  if (out.algorithm.name == kAuto && algorithm != kAuto) {
    out.chosen = algorithm;
    out.chosen_because = period.reason;
  }
  return out;
}

const api::SearchPeriod* period_at(const std::vector<api::SearchPeriod>& periods, std::int64_t next,
                                   std::int64_t basis) {
  const api::SearchPeriod* found = nullptr;
  for (const api::SearchPeriod& period : periods) {
    const bool is_first = found == nullptr;
    // The first period is in force from the beginning, whatever its `since` and `basis` are.
    if (is_first || (period.since <= next && period.basis <= basis)) found = &period;
  }
  return found;
}

Problem problem_of(const api::Study& study) {
  const std::vector<api::SearchPeriod>& periods = study.status.search;
  return periods.empty() ? problem_of(study.spec) : problem_of(study.spec, periods.back());
}

Problem problem_at(const api::Study& study, std::int64_t next, std::int64_t basis) {
  const api::SearchPeriod* period = period_at(study.status.search, next, basis);
  return period == nullptr ? problem_of(study.spec) : problem_of(study.spec, *period);
}

bool is_known(const api::SearchPeriod& period) {
  if (period.revision.value_or(kFirstRevision) > kNewestRevision) return false;
  return algorithm_of(period) && (period.early_stopping.empty() ||
                                  api::from_string<api::StoppingKind>(period.early_stopping));
}

bool keeps_checkpoints(const api::StudyStatus& status) {
  const std::vector<api::SearchPeriod>& periods = status.search;
  return periods.empty() || periods.back().durable_checkpoints.value_or(true);
}

api::SearchPeriod settle(const api::Study& study, api::Place place) {
  const std::vector<api::SearchPeriod>& periods = study.status.search;
  const bool begins = periods.empty() || !is_known(periods.front());
  Problem problem = begins ? problem_of(study.spec, place) : unsettled(study.spec);
  if (!begins) keep_steps(periods.front(), problem);
  api::SearchPeriod out;
  out.durable_checkpoints = api::checkpoints_survive(study.spec, place);
  out.algorithm = to_string(problem.algorithm.name);
  out.trials = problem.max_trials;
  out.parallelism = problem.parallelism;
  out.steps = problem.fidelity;
  // A running Study keeps the revision that it began with. The last period may be of a newer
  // program, with a revision that this one does not have.
  out.revision = begins
                     ? kNewestRevision
                     : std::min(periods.back().revision.value_or(kFirstRevision), kNewestRevision);
  // Only a rule that `auto` added: a rule of the spec is read from there.
  const bool adds = problem.early_stopping && !study.spec.early_stopping;
  if (adds) out.early_stopping = to_string(problem.early_stopping->name);
  if (problem.algorithm.name != kAuto) return out;
  const Result<Space> space = Space::make(problem.parameters);
  if (!space.ok()) return out;  // make_sampler reports the error
  const Choice choice = choose_algorithm(problem, *space);
  const auto before = begins ? std::nullopt : algorithm_of(periods.back());
  const bool keeps = before && is_known(periods.back()) && api::traits(*before).learns &&
                     !api::traits(choice.algorithm).learns;
  out.algorithm = to_string(keeps ? *before : choice.algorithm);
  out.reason = keeps ? periods.back().reason : choice.reason;
  return out;
}

std::vector<std::int64_t> rung_steps(const api::Study& study) {
  const Problem problem = problem_of(study);
  return rung_steps(problem.algorithm, problem.early_stopping, problem.resource);
}

}  // namespace fettle::search
