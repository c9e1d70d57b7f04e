// A sampler for tests: point i of its space is {"x": (i + 1) / 100}, whatever the history is.
#pragma once

#include <string>

#include "search/search.h"

namespace fettle::core {

class FakeSampler : public search::Sampler {
 public:
  explicit FakeSampler(std::int64_t points) : points_(points) {}

  search::Suggestion suggest(const search::History& history, std::int64_t n) override {
    search::Suggestion suggestion;
    const auto first = static_cast<std::int64_t>(history.trials.size());
    for (std::int64_t i = first; i < first + n; ++i) {
      suggestion.exhausted = i >= points_;
      if (suggestion.exhausted) break;
      suggestion.points.push_back(Json::object({{"x", static_cast<double>(i + 1) / 100}}));
    }
    return suggestion;
  }

  std::string description() const override { return "fake"; }

 private:
  std::int64_t points_;
};

}  // namespace fettle::core
