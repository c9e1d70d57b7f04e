// Estimates: what models say about a Study. They take up to seconds, so a page that follows a Study
// gets them apart from its facts, and later. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/views/reason.h"
#include "cli/views/view.h"

namespace fettle::cli {

// The best trial of a Study with noisy results (views/expected_best.h).
struct Recommendation {
  api::BestTrial best;
  ExpectedBest expected;
};

struct Estimates {
  std::string uid;                                   // of the Study
  std::int64_t facts = 0;                            // from which it was made
  std::map<std::int64_t, Expectation> expectations;  // by the trial's index
  Json insights;                                     // of the page's data
  std::optional<Recommendation> recommendation;      // absent: the best value is of the best trial
};

Estimates estimate(const RunView& view);

// Returns the number of facts that a model can learn from.
std::int64_t count_facts(const RunView& view);

// Shows the recommendation in the view, as expect_best() does.
void recommend(const std::optional<Recommendation>& recommendation, RunView& view);

}  // namespace fettle::cli
