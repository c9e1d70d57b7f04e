#include "core/study/problem.h"

#include "core/study/spending.h"
#include "search/study_problem.h"

namespace fettle::core {

namespace {

search::Problem with_known_values(const api::Study& study, const api::SearchPeriod* period,
                                  search::Problem out) {
  out.priors = study.status.prior_observations;
  // The cost limit of the period, not of today's budget.
  const bool settled = period != nullptr && study.spec.algorithm.cost_aware;
  out.max_cost = settled ? period->max_cost : max_cost_of(study.spec);
  return out;
}

}  // namespace

search::Problem problem_of(const api::Study& study) {
  const auto& periods = study.status.search;
  return with_known_values(study, periods.empty() ? nullptr : &periods.back(),
                           search::problem_of(study));
}

search::Problem problem_at(const api::Study& study, std::int64_t next, std::int64_t basis) {
  return with_known_values(study, search::period_at(study.status.search, next, basis),
                           search::problem_at(study, next, basis));
}

}  // namespace fettle::core
