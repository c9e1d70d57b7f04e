#include "search/study_problem.h"

#include "search/auto.h"

namespace fettle::search {

Problem problem_of(const api::StudySpec& spec) {
  Problem out;
  out.parameters = spec.parameters;
  out.objectives = spec.objectives;
  out.algorithm = spec.algorithm;
  out.resource = spec.resource;
  out.max_trials = spec.budget.trials;
  out.parallelism = spec.budget.parallelism;
  out.early_stopping = spec.early_stopping;
  if (spec.warm_start) out.first_points = spec.warm_start->points;
  // The built-in trainer always writes checkpoints. Of other images the Study says so by asking
  // where they are to go.
  const bool resumes = spec.trial.trainer || spec.trial.checkpoints;
  const bool limits_work = spec.budget.wall_time || spec.budget.gpu_hours;
  settle_fidelity(out, {.resumes = resumes,
                        .limits_work = limits_work,
                        .few_trials = spec.budget.trials <= kFewTrials});
  return out;
}

std::vector<std::int64_t> rung_steps(const api::StudySpec& spec) {
  const Problem problem = problem_of(spec);
  return rung_steps(problem.algorithm, problem.early_stopping, problem.resource);
}

}  // namespace fettle::search
