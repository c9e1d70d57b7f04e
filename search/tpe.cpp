// Tree-structured Parzen estimator (Bergstra et al. 2011), multivariate and grouped, with Optuna
// 5's constants: of the trials that ended the best tenth (at most 25) are the good ones; draw
// candidates from the density of the good, take the one where good over bad is largest.
//
// Parameters that exist under the same condition are one group, modelled jointly over the trials in
// which it is active, with a split into good and bad of its own: what is good within a branch is
// learnt even where the branch is poor. Pending trials count as bad ("constant liar"), so that
// workers spread. How trials compare, also with several objectives: ranking.h.
// Trial i is a function of (seed, i) and the history.
#include <algorithm>
#include <limits>

#include "search/fold.h"
#include "search/parzen.h"
#include "search/ranking.h"
#include "search/samplers.h"
#include "search/sobol_sequence.h"

namespace fettle::search {
namespace {

constexpr std::int64_t kMaxGood = 25;
constexpr int kMaxModelAttempts = 4;  // choices by the model that were tried already
constexpr int kMaxGoodDraws = 32;     // plain draws from the good before the model is given up

class TpeSampler final : public FoldingSampler {
 public:
  TpeSampler(Space space, std::int64_t seed, TpeSettings settings,
             std::vector<api::Objective> objectives)
      : FoldingSampler(std::move(space), seed, true),
        settings_(settings),
        objectives_(std::move(objectives)),
        ranking_(objectives_) {
    const std::size_t dimensions = this->space().dimensions();
    if (dimensions >= 1 && dimensions <= SobolSequence::kMaxDimensions) {
      startup_.emplace(dimensions, draw_key(seed, Purpose::kScramble));
    }
  }

  std::string description() const override {
    return "tpe (multivariate, " + std::to_string(settings_.startup_trials) + " startup trials, " +
           std::to_string(settings_.candidates) + " candidates)";
  }

 protected:
  void add_trial(const Point* point) override { points_.push_back(point ? *point : Point()); }
  void remove_trial() override { points_.pop_back(); }
  void add_event(const Event& event) override { ranking_.add(event.trial, event.fact); }
  void reset() override {
    points_.clear();
    ranking_ = Ranking(objectives_);
  }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    if (starting()) {
      return Explanation{.words = "point " + std::to_string(trial + 1) +
                                  " of a quasi-random start, which lasts until " +
                                  std::to_string(settings_.startup_trials) + " trials have ended",
                         .mean = {},
                         .deviation = {},
                         .acquisition = {}};
    }
    double log_ratio = 0;
    const std::vector<Model> models = fit();
    for (std::size_t g = 0; g < models.size(); ++g) {
      if (is_active(point[space().groups()[g].front()])) log_ratio += ratio(models[g], point);
    }
    return Explanation{.words =
                           "logarithm of how much denser the good trials lie here than the "
                           "others",
                       .mean = {},
                       .deviation = {},
                       .acquisition = log_ratio};
  }

  std::optional<Point> propose(std::int64_t trial) override {
    if (starting()) return start(trial);
    Random random(draw_key(seed(), Purpose::kModel), static_cast<std::uint64_t>(trial));
    const std::vector<Model> models = fit();
    for (int i = 0; i < kMaxModelAttempts; ++i) {
      Point point = choose(models, settings_.candidates, random);
      if (!tried(point)) return point;
    }
    for (int i = 0; i < kMaxGoodDraws; ++i) {
      Point point = choose(models, 1, random);
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

 private:
  // Of one group.
  struct Model {
    Parzen good;
    Parzen bad;
  };

  bool starting() const {
    return ranking_.size() < static_cast<std::size_t>(settings_.startup_trials) ||
           ranking_.size() == 0;
  }

  // Quasi-random points to start with: they cover the space better than independent draws.
  std::optional<Point> start(std::int64_t trial) const {
    if (startup_) {
      Point point = space().from_unit(startup_->at(static_cast<std::uint64_t>(trial)));
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

  std::vector<Model> fit() {
    std::vector<Model> out;
    for (const std::vector<std::size_t>& group : space().groups()) out.push_back(fit_group(group));
    return out;
  }

  Model fit_group(const std::vector<std::size_t>& group) {
    std::vector<std::int64_t> ended;  // best first
    for (const std::int64_t trial : ranking_.order()) {
      if (in_group(trial, group)) ended.push_back(trial);
    }
    const auto count = static_cast<std::int64_t>(ended.size());
    const std::int64_t good_count = std::min((count + 9) / 10, kMaxGood);
    std::vector<bool> is_good(points_.size(), false);
    for (std::int64_t i = 0; i < good_count; ++i) {
      is_good[static_cast<std::size_t>(ended[static_cast<std::size_t>(i)])] = true;
    }
    std::vector<const Point*> good;
    std::vector<const Point*> bad;
    for (std::size_t trial = 0; trial < points_.size(); ++trial) {
      if (!in_group(static_cast<std::int64_t>(trial), group)) continue;
      (is_good[trial] ? good : bad).push_back(&points_[trial]);
    }
    return {Parzen(space(), group, good), Parzen(space(), group, bad)};
  }

  bool in_group(std::int64_t trial, const std::vector<std::size_t>& group) const {
    const Point& point = points_[static_cast<std::size_t>(trial)];
    return !point.empty() && is_active(point[group.front()]);
  }

  // Group by group, each the best of `candidates` draws; later groups depend on what was chosen.
  Point choose(const std::vector<Model>& models, std::int64_t candidates, Random& random) const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    Point point(space().dimensions(), kNaN);
    for (std::size_t g = 0; g < models.size(); ++g) {
      if (!space().active(space().groups()[g].front(), point)) continue;
      Point best = point;
      models[g].good.draw(random, best);
      double best_ratio = candidates > 1 ? ratio(models[g], best) : 0;
      for (std::int64_t i = 1; i < candidates; ++i) {
        Point candidate = point;
        models[g].good.draw(random, candidate);
        const double candidate_ratio = ratio(models[g], candidate);
        if (candidate_ratio <= best_ratio) continue;
        best = std::move(candidate);
        best_ratio = candidate_ratio;
      }
      point = std::move(best);
    }
    return point;
  }

  static double ratio(const Model& model, const Point& point) {
    return model.good.log_density(point) - model.bad.log_density(point);
  }

  TpeSettings settings_;
  std::vector<api::Objective> objectives_;
  Ranking ranking_;
  std::vector<Point> points_;  // of each trial; empty where it is not of this space
  std::optional<SobolSequence> startup_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                  std::vector<api::Objective> objectives) {
  return std::make_unique<TpeSampler>(std::move(space), seed, settings, std::move(objectives));
}

}  // namespace fettle::search
