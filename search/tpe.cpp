// Tree-structured Parzen estimator (Bergstra et al. 2011), multivariate and grouped: of the trials
// that ended the best tenth (at most 25) are the good ones; draw candidates from the density of the
// good, take the one where good over bad is largest.
//
// Parameters that exist under the same condition are one group, modelled jointly over the trials in
// which it is active, with a split into good and bad of its own: what is good within a branch is
// learnt even where the branch is poor. Pending trials count as bad ("constant liar"), so that
// workers spread. How trials compare, also with several objectives: ranking.h.
// Of the bad ones the newest kMostBad count, so that a suggestion costs the same after any number
// of trials. What ended is modelled once until more ends, and candidates serve kServed suggestions,
// so that many points at once cost little more than one. Trial i is a function of (seed, i) and the
// history.
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/columns.h"
#include "search/fold.h"
#include "search/parzen.h"
#include "search/quasi_random_start.h"
#include "search/ranking.h"
#include "search/samplers.h"

namespace fettle::search {
namespace {

constexpr std::int64_t kMaxGood = 25;
// Results that are enough for a model, once all trials of the start were suggested: waiting for the
// rest of them would spend many more on the start where many trials run at once.
constexpr std::int64_t kEnough = 4;
// With more trials pending than this, and than have ended, a model knows nothing more to say.
constexpr std::int64_t kMaxPending = 1000;
constexpr std::size_t kMostBad = 2000;
constexpr std::size_t kServed = 8;  // suggestions that candidates serve
constexpr KernelWidths kPendingWidths = {0, Columns::kNarrowest, false};
constexpr double kInactive = std::numeric_limits<double>::quiet_NaN();
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
        start_(this->space().dimensions(), seed) {}

  std::string description() const override {
    return "tpe (multivariate, " + std::to_string(settings_.startup_trials) + " startup trials, " +
           std::to_string(settings_.candidates) + " candidates)";
  }

 protected:
  void add_trial(const Point* point) override {
    pending_.push_back(columns_.size());
    columns_.push(point);
  }
  void remove_trial() override {
    pending_.pop_back();
    columns_.pop();
  }
  void add_event(const Event& event) override {
    const std::size_t before = ranking_.size();
    ranking_.add(event.trial, event.fact);
    if (event.fact.kind == api::FactKind::kRung) return;
    models_.clear();
    pools_.clear();
    if (ranking_.size() == before) return;
    pending_.erase(std::lower_bound(pending_.begin(), pending_.end(), event.trial));
    ended_.insert(std::upper_bound(ended_.begin(), ended_.end(), event.trial), event.trial);
  }
  void reset() override {
    columns_.clear();
    ranking_ = Ranking(objectives_);
    pending_.clear();
    ended_.clear();
    models_.clear();
    pools_.clear();
  }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    if (starting(trial)) return QuasiRandomStart::explain(trial);
    double log_ratio = 0;
    fit();
    for (std::size_t g = 0; g < models_.size(); ++g) {
      if (is_active(point[space().groups()[g].front()])) {
        log_ratio += ratios(g, weighed(g, {point})).front();
      }
    }
    return Explanation{.words =
                           "logarithm of how much denser the good trials lie here than the "
                           "others",
                       .mean = {},
                       .deviation = {},
                       .acquisition = log_ratio};
  }

  std::optional<Point> propose(std::int64_t trial) override {
    if (starting(trial)) return untried_at(start_.at(trial), trial);
    fit();
    fill_pools();
    Point point = choose([this](std::size_t g) { return best_of(g, pools_[g]); });
    if (!tried(point)) return point;
    Random random(draw_key(seed(), Purpose::kModel), static_cast<std::uint64_t>(trial));
    for (int i = 0; i < kMaxModelAttempts; ++i) {
      point = choose([&](std::size_t g) { return best_of(g, weighed(g, draws(g, random))); });
      if (!tried(point)) return point;
    }
    for (int i = 0; i < kMaxGoodDraws; ++i) {
      point = choose([&](std::size_t g) { return draw(g, random); });
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

 private:
  struct Good {
    std::vector<std::int64_t> trials;  // ascending
    std::vector<double> weights;       // one in the mean
  };
  // Of one group, over the trials that ended.
  struct Model {
    Parzen good;
    Parzen bad;
  };
  // Points of which only one group's coordinates are set, and logarithms of the densities there.
  struct Candidates {
    std::vector<Point> points;
    std::vector<double> good;
    std::vector<double> bad;  // without the pending trials
  };

  bool starting(std::int64_t trial) const {
    const auto ended = static_cast<std::int64_t>(ended_.size());
    const auto pending = static_cast<std::int64_t>(pending_.size());
    const bool crowded = pending > kMaxPending && pending > ended;
    return trial + priors() < settings_.startup_trials || ended < enough_ || crowded;
  }

  // Models what ended, unless nothing did since the last time.
  void fit() {
    if (!models_.empty()) return;
    for (std::size_t g = 0; g < space().groups().size(); ++g) {
      const std::vector<std::size_t>& group = space().groups()[g];
      const Good good = good_trials(g);
      models_.push_back({Parzen(space(), group, columns_, good.trials, good.weights),
                         Parzen(space(), group, columns_, bad_trials(g, good.trials))});
    }
  }

  // The best tenth of those that ended, by age. The better one is, the more it weighs, as in the
  // recombination of an evolution strategy: rank r of n weighs in proportion to ln(n + 1) - ln r.
  Good good_trials(std::size_t g) {
    const std::int64_t ended = std::count_if(
        ended_.begin(), ended_.end(), [&](std::int64_t trial) { return in_group(trial, g); });
    const auto count = static_cast<std::size_t>(std::min((ended + 9) / 10, kMaxGood));
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

  // The others among the newest that ended, by age.
  std::vector<std::int64_t> bad_trials(std::size_t g, const std::vector<std::int64_t>& good) const {
    std::vector<std::int64_t> out;
    const std::size_t older = ended_.size() > kMostBad ? ended_.size() - kMostBad : 0;
    for (std::size_t i = older; i < ended_.size(); ++i) {
      if (!in_group(ended_[i], g)) continue;
      if (!std::binary_search(good.begin(), good.end(), ended_[i])) out.push_back(ended_[i]);
    }
    return out;
  }

  bool in_group(std::int64_t trial, std::size_t g) const {
    return is_active(columns_.at(space().groups()[g].front(), trial));
  }

  Point draw(std::size_t g, Random& random) const {
    Point out(space().dimensions(), kInactive);
    models_[g].good.draw(random, out);
    return out;
  }

  std::vector<Point> draws(std::size_t g, Random& random) const {
    std::vector<Point> out;
    for (std::int64_t i = 0; i < settings_.candidates; ++i) out.push_back(draw(g, random));
    return out;
  }

  Candidates weighed(std::size_t g, std::vector<Point> points) const {
    Candidates out{std::move(points), {}, {}};
    out.good = models_[g].good.log_densities(out.points);
    out.bad = models_[g].bad.log_densities(out.points);
    return out;
  }

  // Candidates for the next kServed suggestions, unless something ends before.
  void fill_pools() {
    const std::size_t number = pending_.size() / kServed;
    if (!pools_.empty() && pool_number_ == number) return;
    pools_.clear();
    pool_number_ = number;
    Random random(
        mix_keys(draw_key(seed(), Purpose::kPool), static_cast<std::uint64_t>(ended_.size())),
        number);
    for (std::size_t g = 0; g < models_.size(); ++g) pools_.push_back(weighed(g, draws(g, random)));
  }

  // Logarithms of good over bad, the pending trials among the bad.
  std::vector<double> ratios(std::size_t g, const Candidates& candidates) const {
    std::vector<double> out = candidates.good;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= candidates.bad[i];
    std::vector<std::int64_t> running;
    std::copy_if(pending_.begin(), pending_.end(), std::back_inserter(running),
                 [&](std::int64_t trial) { return in_group(trial, g); });
    if (running.empty()) return out;
    const Parzen there(space(), space().groups()[g], columns_, running,
                       std::vector<double>(running.size(), 1.0), kPendingWidths);
    const double share = there.weight() / models_[g].bad.weight();
    const std::vector<double> logs = there.log_densities(candidates.points);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] -= std::log1p(share * std::exp(logs[i] - candidates.bad[i]));
    }
    return out;
  }

  // Where good over bad is largest, of those that no pending trial has taken; the first of equals.
  const Point& best_of(std::size_t g, const Candidates& candidates) const {
    std::vector<double> scores = ratios(g, candidates);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      if (taken(g, candidates.points[i])) scores[i] = -std::numeric_limits<double>::infinity();
    }
    const auto best = std::max_element(scores.begin(), scores.end());
    return candidates.points[static_cast<std::size_t>(best - scores.begin())];
  }

  bool taken(std::size_t g, const Point& point) const {
    const std::vector<std::size_t>& group = space().groups()[g];
    return std::any_of(pending_.begin(), pending_.end(), [&](std::int64_t trial) {
      return std::all_of(group.begin(), group.end(), [&](std::size_t parameter) {
        return columns_.at(parameter, trial) == columns_.place(parameter, point[parameter]);
      });
    });
  }

  // Group by group; later groups depend on what was chosen. `of_group`: a point with its
  // coordinates.
  template <class OfGroup>
  Point choose(const OfGroup& of_group) const {
    Point point(space().dimensions(), kInactive);
    for (std::size_t g = 0; g < models_.size(); ++g) {
      const std::vector<std::size_t>& group = space().groups()[g];
      if (!space().active(group.front(), point)) continue;
      const Point chosen = of_group(g);
      for (const std::size_t parameter : group) point[parameter] = chosen[parameter];
    }
    return point;
  }

  TpeSettings settings_;
  std::vector<api::Objective> objectives_;
  Ranking ranking_;
  std::int64_t enough_;  // results without which there is no model
  Columns columns_;
  std::vector<std::int64_t> pending_;  // ascending
  std::vector<std::int64_t> ended_;    // ascending
  QuasiRandomStart start_;
  // Caches, of each group: empty after something ended.
  std::vector<Model> models_;
  std::vector<Candidates> pools_;
  std::size_t pool_number_ = 0;
};

}  // namespace

std::unique_ptr<FoldingSampler> make_tpe(Space space, std::int64_t seed, TpeSettings settings,
                                         std::vector<api::Objective> objectives) {
  return std::make_unique<TpeSampler>(std::move(space), seed, settings, std::move(objectives));
}

}  // namespace fettle::search
