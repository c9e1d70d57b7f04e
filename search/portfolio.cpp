// Portfolio: two samplers that take turns over one history. Each learns from what either tried.
//
// The models fail in different places: where a Gaussian process is sure of the wrong thing
// (branches that it never tried, steps and plateaus that no smooth kernel fits), a Parzen estimator
// still draws near what was good, and the other way round. What one finds, the other refines.
//
// Invariant: whose turn it is follows from the trial's number alone. Not synchronised.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "search/fold.h"
#include "search/samplers.h"

namespace fettle::search {
namespace {

constexpr std::int64_t kAlone = 8;  // first trials, which are the first sampler's own
constexpr std::int64_t kTurn = 3;   // then each third one is the second's

class Portfolio final : public Sampler {
 public:
  Portfolio(std::unique_ptr<FoldingSampler> first, std::unique_ptr<FoldingSampler> second)
      : samplers_{std::move(first), std::move(second)} {}

  Suggestion suggest(const History& history, std::int64_t n) override {
    for (const auto& sampler : samplers_) sampler->begin(history);
    Suggestion out;
    for (std::int64_t i = 0; i < n && !out.exhausted; ++i) {
      FoldingSampler& sampler = whose_turn(history, i);
      const std::optional<Point> point = sampler.next();
      out.exhausted = !point;
      if (!point) break;
      out.points.push_back(sampler.space().write(*point));
      for (const auto& each : samplers_) each->take(*point);
    }
    for (const auto& sampler : samplers_) sampler->end();
    return out;
  }

  std::optional<Explanation> explain(const History& history, const Json& point) override {
    FoldingSampler& sampler = whose_turn(history, 0);
    std::optional<Explanation> out = sampler.explain(history, point);
    if (out) out->words = (&sampler == samplers_[0].get() ? "gp: " : "tpe: ") + out->words;
    return out;
  }

  std::string description() const override {
    return "portfolio of " + samplers_[0]->description() + " and, each third trial, " +
           samplers_[1]->description();
  }

 private:
  // Of the `ahead`-th trial after those of `history`.
  FoldingSampler& whose_turn(const History& history, std::int64_t ahead) const {
    const auto trial =
        static_cast<std::int64_t>(history.trials.size()) - history.unnumbered + ahead;
    return *samplers_[trial >= kAlone && trial % kTurn == kTurn - 1 ? 1 : 0];
  }

  std::array<std::unique_ptr<FoldingSampler>, 2> samplers_;
};

}  // namespace

std::unique_ptr<Sampler> make_portfolio(std::unique_ptr<FoldingSampler> gp,
                                        std::unique_ptr<FoldingSampler> tpe) {
  return std::make_unique<Portfolio>(std::move(gp), std::move(tpe));
}

}  // namespace fettle::search
