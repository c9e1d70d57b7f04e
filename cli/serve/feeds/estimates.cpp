#include "cli/serve/feeds/estimates.h"

#include <algorithm>

#include "cli/report/study_data.h"
#include "cli/views/expected_best.h"

namespace fettle::cli {

Estimates estimate(const RunView& view) {
  Estimates made;
  made.uid = view.study.metadata.uid;
  made.facts = count_facts(view);
  made.expectations = expectations_of(view);
  made.insights = insights_data(view);
  RunView expected = view;
  expect_best(expected);
  if (expected.expected_best) {
    made.recommendation = {expected.study.status.best.front(), *expected.expected_best};
  }
  return made;
}

std::int64_t count_facts(const RunView& view) {
  std::int64_t facts = 0;
  for (const api::TrialPtr& trial : view.trials) facts += std::ssize(trial->status.facts);
  return facts;
}

void recommend(const std::optional<Recommendation>& recommendation, RunView& view) {
  std::vector<api::BestTrial>& best = view.study.status.best;
  if (!recommendation || best.empty()) return;
  best.front() = recommendation->best;
  view.expected_best = recommendation->expected;
}

}  // namespace fettle::cli
