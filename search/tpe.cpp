// Tree-structured Parzen estimator (Bergstra et al. 2011), multivariate and grouped: of the trials
// that ended the best tenth (at most 25) are the good ones; draw candidates from the density of the
// good, take the one where good over bad is largest.
//
// Parameters that exist under the same condition are one group, modelled jointly over the trials in
// which it is active, with a split into good and bad of its own: what is good within a branch is
// learnt even where the branch is poor. Pending trials count as bad ("constant liar"), so that
// workers spread. How trials compare, also with several objectives: ranking.h.
// Of the bad ones the newest Columns::kWindow count, so that a suggestion costs the same after any
// number of trials. Trial i is a function of (seed, i) and the history.
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/columns.h"
#include "search/fold.h"
#include "search/parzen.h"
#include "search/ranking.h"
#include "search/samplers.h"
#include "search/sobol_sequence.h"

namespace fettle::search {
namespace {

constexpr std::int64_t kMaxGood = 25;
// Results that are enough for a model, once all trials of the start were suggested: waiting for the
// rest of them would spend many more on the start where many trials run at once.
constexpr std::int64_t kEnough = 4;
// With more trials pending than this, and than have ended, a model knows nothing more to say.
constexpr std::int64_t kMaxPending = 1000;
constexpr int kMaxModelAttempts = 4;  // choices by the model that were tried already
constexpr int kMaxGoodDraws = 32;     // plain draws from the good before the model is given up

class TpeSampler final : public FoldingSampler {
 public:
  TpeSampler(Space space, std::int64_t seed, TpeSettings settings,
             std::vector<api::Objective> objectives)
      : FoldingSampler(std::move(space), seed, true),
        settings_(settings),
        objectives_(std::move(objectives)),
        ranking_(objectives_),
        enough_(std::clamp<std::int64_t>(settings.startup_trials, 1, kEnough)),
        columns_(this->space()),
        ended_(this->space().groups().size(), 0) {
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
  void add_trial(const Point* point) override { columns_.push(point); }
  void remove_trial() override { columns_.pop(); }
  void add_event(const Event& event) override {
    const std::size_t before = ranking_.size();
    ranking_.add(event.trial, event.fact);
    if (ranking_.size() == before) return;
    for (std::size_t g = 0; g < ended_.size(); ++g) ended_[g] += in_group(event.trial, g) ? 1 : 0;
  }
  void reset() override {
    columns_.clear();
    ranking_ = Ranking(objectives_);
    ended_.assign(ended_.size(), 0);
  }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    if (starting(trial)) {
      return Explanation{.words = "point " + std::to_string(trial + 1) +
                                  " of a quasi-random start, before there is enough to learn from",
                         .mean = {},
                         .deviation = {},
                         .acquisition = {}};
    }
    double log_ratio = 0;
    const std::vector<Model> models = fit();
    for (std::size_t g = 0; g < models.size(); ++g) {
      if (is_active(point[space().groups()[g].front()]))
        log_ratio += ratios_of(models[g], {point}).front();
    }
    return Explanation{.words =
                           "logarithm of how much denser the good trials lie here than the "
                           "others",
                       .mean = {},
                       .deviation = {},
                       .acquisition = log_ratio};
  }

  std::optional<Point> propose(std::int64_t trial) override {
    if (starting(trial)) return start(trial);
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
  struct Good {
    std::vector<std::int64_t> trials;  // ascending
    std::vector<double> weights;       // one in the mean
  };
  // Of one group.
  struct Model {
    Parzen good;
    Parzen bad;
  };

  bool starting(std::int64_t trial) const {
    const auto ended = static_cast<std::int64_t>(ranking_.size());
    const std::int64_t pending = columns_.size() - ended;
    const bool crowded = pending > kMaxPending && pending > ended;
    return trial < settings_.startup_trials || ended < enough_ || crowded;
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
    for (std::size_t g = 0; g < ended_.size(); ++g) {
      const std::vector<std::size_t>& group = space().groups()[g];
      const Good good = good_trials(g);
      out.push_back({Parzen(space(), group, columns_, good.trials, good.weights),
                     Parzen(space(), group, columns_, bad_trials(g, good.trials))});
    }
    return out;
  }

  // The best tenth of those that ended, by age. The better one is, the more it weighs, as in the
  // recombination of an evolution strategy: rank r of n weighs in proportion to ln(n + 1) - ln r.
  Good good_trials(std::size_t g) {
    const auto count = static_cast<std::size_t>(std::min((ended_[g] + 9) / 10, kMaxGood));
    std::vector<std::pair<std::int64_t, double>> best;
    double sum = 0;
    for (const std::int64_t trial : ranking_.order()) {
      if (best.size() == count) break;
      if (!in_group(trial, g)) continue;
      const auto rank = static_cast<double>(best.size() + 1);
      best.emplace_back(trial, std::log(static_cast<double>(count + 1)) - std::log(rank));
      sum += best.back().second;
    }
    std::sort(best.begin(), best.end());
    Good out;
    for (const auto& [trial, weight] : best) {
      out.trials.push_back(trial);
      out.weights.push_back(weight * static_cast<double>(best.size()) / sum);
    }
    return out;
  }

  // All others within the window, by age.
  std::vector<std::int64_t> bad_trials(std::size_t g, const std::vector<std::int64_t>& good) const {
    std::vector<std::int64_t> out;
    for (std::int64_t trial = columns_.window_begin(); trial < columns_.size(); ++trial) {
      if (!in_group(trial, g)) continue;
      if (!std::binary_search(good.begin(), good.end(), trial)) out.push_back(trial);
    }
    return out;
  }

  bool in_group(std::int64_t trial, std::size_t g) const {
    return is_active(columns_.at(space().groups()[g].front(), trial));
  }

  // Group by group, each the best of `candidates` draws; later groups depend on what was chosen.
  Point choose(const std::vector<Model>& models, std::int64_t candidates, Random& random) const {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    Point point(space().dimensions(), kNaN);
    for (std::size_t g = 0; g < models.size(); ++g) {
      if (!space().active(space().groups()[g].front(), point)) continue;
      std::vector<Point> drawn(static_cast<std::size_t>(candidates), point);
      for (Point& candidate : drawn) models[g].good.draw(random, candidate);
      point = std::move(drawn[candidates > 1 ? best_of(models[g], drawn) : 0]);
    }
    return point;
  }

  // Logarithms of good over bad.
  static std::vector<double> ratios_of(const Model& model, const std::vector<Point>& candidates) {
    std::vector<double> ratios = model.good.log_densities(candidates);
    const std::vector<double> bad = model.bad.log_densities(candidates);
    for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] -= bad[i];
    return ratios;
  }

  // Where good over bad is largest; the first of equals.
  static std::size_t best_of(const Model& model, const std::vector<Point>& candidates) {
    const std::vector<double> ratios = ratios_of(model, candidates);
    return static_cast<std::size_t>(std::max_element(ratios.begin(), ratios.end()) -
                                    ratios.begin());
  }

  TpeSettings settings_;
  std::vector<api::Objective> objectives_;
  Ranking ranking_;
  std::int64_t enough_;  // results without which there is no model
  Columns columns_;
  std::vector<std::int64_t> ended_;  // how many of each group
  std::optional<SobolSequence> startup_;
};

}  // namespace

std::unique_ptr<Sampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                  std::vector<api::Objective> objectives) {
  return std::make_unique<TpeSampler>(std::move(space), seed, settings, std::move(objectives));
}

}  // namespace fettle::search
