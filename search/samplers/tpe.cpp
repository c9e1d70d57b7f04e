// TpeSampler: tree-structured Parzen estimator (Bergstra et al. 2011): draws candidates from the
// density of the good trials and takes the one with the largest ratio of good over bad
// (density_ratio.h).
//
// The same candidates serve kServed suggestions, so that a large batch costs little more than one.
// Trial i is a function of (seed, i) and the history.
#include <algorithm>
#include <limits>

#include "search/incremental_sampler.h"
#include "search/samplers/density_ratio.h"
#include "search/samplers/quasi_random_start.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

// With more trials pending than this, and more than have ended, the model adds nothing.
constexpr std::int64_t kMaxPending = 1000;
constexpr std::size_t kServed = 8;    // suggestions served by the same candidates
constexpr int kMaxModelAttempts = 4;  // choices of the model that were already tried
constexpr int kMaxGoodDraws = 32;     // draws from the good density before the model is given up

class TpeSampler final : public IncrementalSampler {
 public:
  TpeSampler(Space space, std::int64_t seed, TpeSettings settings,
             std::vector<api::Objective> objectives)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        settings_(settings),
        enough_(std::clamp<std::int64_t>(settings.startup_trials, 1, DensityRatio::kEnough)),
        ratio_(this->space(), std::move(objectives)),  // `space` was moved from
        start_(this->space().dimensions(), seed) {}

  std::string description() const override {
    return "tpe (multivariate, " + std::to_string(settings_.startup_trials) + " startup trials, " +
           std::to_string(settings_.candidates) + " candidates)";
  }

 protected:
  void add_trial(const Point* point) override { ratio_.add_trial(point); }
  void remove_trial() override { ratio_.remove_trial(); }
  void add_event(const Event& event) override { ratio_.add_event(event); }
  void reset() override { ratio_.reset(); }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    if (starting(trial)) return QuasiRandomStart::explain(trial);
    ratio_.fit();
    return Explanation{.words = DensityRatio::kWords,
                       .acquisition = ratio_.log_ratios({point}).front()};
  }

  std::optional<Point> propose(std::int64_t trial) override {
    if (starting(trial)) return untried_at(start_.at(trial), trial);
    ratio_.fit();
    fill_pools();
    Point point = ratio_.choose([this](std::size_t g) { return best_of(g, pools_[g]); });
    if (!tried(point)) return point;
    // Already tried: fresh candidates, then draws from the good density, then the prior.
    Random random(draw_key(seed(), Purpose::kModel), static_cast<std::uint64_t>(trial));
    for (int i = 0; i < kMaxModelAttempts; ++i) {
      point = ratio_.choose(
          [&](std::size_t g) { return best_of(g, ratio_.with_densities(g, draws(g, random))); });
      if (!tried(point)) return point;
    }
    for (int i = 0; i < kMaxGoodDraws; ++i) {
      point = ratio_.choose([&](std::size_t g) { return ratio_.draw(g, random); });
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

 private:
  bool starting(std::int64_t trial) const {
    const auto ended = static_cast<std::int64_t>(ratio_.ended());
    const auto pending = static_cast<std::int64_t>(ratio_.pending());
    const bool crowded = pending > kMaxPending && pending > ended;
    return trial + priors() < settings_.startup_trials || ended < enough_ || crowded;
  }

  std::vector<Point> draws(std::size_t g, Random& random) const {
    std::vector<Point> out;
    for (std::int64_t i = 0; i < settings_.candidates; ++i) out.push_back(ratio_.draw(g, random));
    return out;
  }

  // Draws candidates for the next kServed suggestions, unless a trial ends earlier.
  void fill_pools() {
    const std::size_t number = ratio_.pending() / kServed;
    if (pools_version_ == ratio_.version() && pool_number_ == number) return;
    pools_.clear();
    pools_version_ = ratio_.version();
    pool_number_ = number;
    Random random(
        mix_keys(draw_key(seed(), Purpose::kPool), static_cast<std::uint64_t>(ratio_.ended())),
        number);
    for (std::size_t g = 0; g < space().groups().size(); ++g) {
      pools_.push_back(ratio_.with_densities(g, draws(g, random)));
    }
  }

  // Returns the candidate with the largest good over bad that no pending trial has; the first among
  // equals.
  const Point& best_of(std::size_t g, const DensityRatio::Candidates& candidates) const {
    std::vector<double> scores = ratio_.log_ratios(g, candidates);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (ratio_.is_pending(g, candidates.points[i])) {
        scores[i] = -std::numeric_limits<double>::infinity();
      }
    }
    const auto best = std::max_element(scores.begin(), scores.end());
    return candidates.points[static_cast<std::size_t>(best - scores.begin())];
  }

  TpeSettings settings_;
  // Ended trials that a model needs. Usually fewer than startup_trials: waiting for all results of
  // the start would spend many more trials on it if many run at once.
  std::int64_t enough_;
  DensityRatio ratio_;
  QuasiRandomStart start_;
  std::vector<DensityRatio::Candidates> pools_;  // of each group
  std::int64_t pools_version_ = -1;              // version of the ratio at their draw
  std::size_t pool_number_ = 0;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                  std::vector<api::Objective> objectives) {
  return std::make_unique<TpeSampler>(std::move(space), seed, settings, std::move(objectives));
}

}  // namespace fettle::search
