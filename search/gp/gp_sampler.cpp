// Bayesian optimisation: a Gaussian process over what was tried (kernel.h, likelihood.h, warp.h),
// and the point where the expected improvement is largest (acquisition.h, inner_search.h).
//
// Starts with the middle of the space and quasi-random points. Pending trials narrow the variance
// where they are, so that workers spread. Nothing is tried twice. The hyperparameters are those of
// a prefix of the history (fit_schedule.h), so that trial i is a function of (seed, i) and the
// history; the Cholesky factor grows with each outcome and each pending trial.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "search/fold.h"
#include "search/gp/candidates.h"
#include "search/gp/inner_search.h"
#include "search/gp/likelihood.h"
#include "search/gp/outcomes.h"
#include "search/gp/posterior.h"
#include "search/gp/trust_region.h"
#include "search/samplers.h"
#include "search/sobol_sequence.h"

namespace fettle::search {
namespace {

using gp::Candidate;
using gp::Index;

constexpr std::int64_t kLeastStartup = 4;  // unless the settings say otherwise
constexpr std::int64_t kMostStartup = 10;
constexpr std::int64_t kBendAfter = 4;  // outcomes a parameter: numbers are bent from there on
constexpr int kFitEvaluations = 40;     // of the likelihood, from each start
constexpr std::size_t kRefined = 10;    // best points that candidates are near to
constexpr std::size_t kMostConditioned = 256;  // pending trials that the variance knows of
constexpr std::size_t kWindowStep = 128;
constexpr std::size_t kMostModelledPending = 1000;  // with more of them a model adds nothing
constexpr std::uint64_t kMostListed = 1000;         // points of a space that all are candidates
constexpr double kPendingMargin = 0.002;            // for each, in standard deviations
constexpr int kStarts = 5;                          // of the inner search
constexpr int kStartsWithPending = 3;

class GpSampler final : public FoldingSampler {
 public:
  GpSampler(Space space, std::int64_t seed, GpSettings settings,
            std::vector<api::Objective> objectives)
      : FoldingSampler(std::move(space), seed, true),
        settings_(settings),
        objectives_(std::move(objectives)),
        axes_(gp::axes_of(this->space())),
        outcomes_(objectives_) {
    const std::size_t dimensions = this->space().dimensions();
    if (dimensions >= 1 && dimensions <= SobolSequence::kMaxDimensions) {
      sobol_.emplace(dimensions, draw_key(seed, Purpose::kScramble));
    }
    const auto usual = static_cast<std::int64_t>(dimensions) + 1;
    startup_ = settings.startup_trials.value_or(std::clamp(usual, kLeastStartup, kMostStartup));
  }

  std::string description() const override {
    return "gp (Matern-5/2, log expected improvement, " + std::to_string(startup_) +
           " startup trials)";
  }

 protected:
  void add_trial(const Point* point) override { outcomes_.add_trial(point); }
  void remove_trial() override { outcomes_.remove_trial(); }
  void add_event(const Event& event) override { outcomes_.add_event(event); }
  void reset() override {
    outcomes_ = gp::Outcomes(objectives_);
    model_.reset();
    anchor_fit_.reset();
    fit_.reset();
  }

  std::optional<Point> propose(std::int64_t trial) override {
    const auto ended = static_cast<std::int64_t>(outcomes_.ended().size());
    if (trial + priors() < startup_ || ended < std::max<std::int64_t>((startup_ + 1) / 2, 1) ||
        outcomes_.pending().size() > kMostModelledPending) {
      return start(trial);
    }
    update_model();
    const std::uint64_t key = mix_keys(draw_key(seed(), Purpose::kModel), 1);
    Random random(key, static_cast<std::uint64_t>(trial));
    // The more are on their way, the less is a last bit of refinement beside them worth.
    const double margin = kPendingMargin * static_cast<double>(model_->pending.size());
    const double goal = model_->best.back() - margin * std::sqrt(model_->posterior.scale());
    const gp::InnerSearch search{space(),      model_->posterior,
                                 goal,         model_->low,
                                 model_->high, [this](const Point& point) { return tried(point); }};
    const int starts = model_->pending.empty() ? kStarts : kStartsWithPending;
    const std::optional<Candidate> found =
        search.maximise(*model_->pool, model_->candidates, starts, random);
    return found ? found->point : draw_untried(trial);
  }

 private:
  // What is known by some version of the outcomes, and the pending trials added to it.
  struct Model {
    explicit Model(gp::Posterior of) : posterior(std::move(of)) {}
    std::int64_t version = 0;
    gp::Posterior posterior;
    Index observed = 0;  // rows of trials that ended
    std::vector<std::int64_t> pending;
    // The best mean, at any observed row and at the first k pending ones: as if those had ended
    // where they are expected to, so that no worker is sent after what another one fetches.
    std::vector<double> best;
    std::size_t window = 0;   // pending trials before those in `pending`
    std::vector<double> low;  // the box that candidates are in
    std::vector<double> high;
    std::vector<Candidate> candidates;
    std::unique_ptr<gp::Pool> pool;
  };
  // Hyperparameters fitted to the prefix of `count` outcomes.
  struct Fit {
    std::int64_t count = 0;
    gp::Hyperparameters hyperparameters;
  };

  // First the middle, where people put what they think best; then points that cover the space.
  std::optional<Point> start(std::int64_t trial) const {
    if (sobol_) {
      const std::vector<double> middle(space().dimensions(), 0.5);
      Point point =
          space().from_unit(trial == 0 ? middle : sobol_->at(static_cast<std::uint64_t>(trial)));
      if (!tried(point)) return point;
    }
    return draw_untried(trial);
  }

  gp::Inputs inputs_of(const std::vector<std::int64_t>& trials) const {
    gp::Inputs out(static_cast<Index>(trials.size()), static_cast<Index>(space().dimensions()));
    for (std::size_t i = 0; i < trials.size(); ++i) {
      out.set(static_cast<Index>(i), space(), outcomes_.point(trials[i]));
    }
    return out;
  }

  gp::Hyperparameters fit(const gp::Outcomes::Prefix& prefix, const Fit* warm) const {
    const gp::Inputs inputs = inputs_of(prefix.fitted);
    const gp::Likelihood likelihood(axes_, inputs, prefix.targets);
    const bool bends = prefix.count >= kBendAfter * static_cast<std::int64_t>(space().dimensions());
    std::vector<gp::Hyperparameters> starts = {likelihood.prior_mode(0, bends),
                                               likelihood.prior_mode(1.5, bends)};
    if (warm != nullptr) {
      const Eigen::VectorXd straight = starts.back().bends;
      starts.back() = warm->hyperparameters;
      if (starts.back().bends.size() != straight.size()) starts.back().bends = straight;
    }
    return likelihood.fit(starts, kFitEvaluations);
  }

  const gp::Hyperparameters& hyperparameters() {
    const gp::Outcomes::Prefix& anchor = outcomes_.anchor();
    const gp::Outcomes::Prefix& last = outcomes_.last_fit();
    if (anchor.count > 0 && (!anchor_fit_ || anchor_fit_->count != anchor.count)) {
      anchor_fit_ = Fit{anchor.count, fit(anchor, nullptr)};
    }
    if (!fit_ || fit_->count != last.count) {
      const Fit* warm = anchor.count > 0 ? &*anchor_fit_ : nullptr;
      fit_ = Fit{last.count, fit(last, warm)};
    }
    return fit_->hyperparameters;
  }

  void update_model() {
    if (model_ == nullptr || model_->version != outcomes_.version()) build_model();
    add_pending();
  }

  void build_model() {
    const gp::Outcomes::Prefix& fitted = outcomes_.last_fit();
    std::vector<std::int64_t> trials = fitted.trials;
    const std::vector<std::int64_t>& ended = outcomes_.ended();
    const std::vector<std::int64_t> newer(ended.begin() + fitted.count, ended.end());
    const auto capacity = static_cast<Index>(trials.size() + newer.size() + kMostConditioned);
    model_ = std::make_unique<Model>(
        gp::Posterior(axes_, hyperparameters(), inputs_of(trials), capacity));
    const gp::Inputs added = inputs_of(newer);
    for (Index i = 0; i < added.at.rows(); ++i) model_->posterior.append(added, i);
    trials.insert(trials.end(), newer.begin(), newer.end());
    model_->posterior.set_targets(outcomes_.targets(trials));
    model_->version = outcomes_.version();
    model_->observed = model_->posterior.rows();
    model_->best = {model_->posterior.fitted().minCoeff()};
    make_candidates(trials);
    model_->pool =
        std::make_unique<gp::Pool>(model_->posterior, gp::inputs_of(space(), model_->candidates));
  }

  // Makes the pending trials of the model those of the outcomes, keeping what they share.
  void add_pending() {
    const std::set<std::int64_t>& all = outcomes_.pending();
    // More than can be conditioned on: a window over the newest, moved in strides.
    std::size_t window = 0;
    while (all.size() - window > kMostConditioned) window += kWindowStep;
    const std::vector<std::int64_t> wanted(
        std::next(all.begin(), static_cast<std::ptrdiff_t>(window)), all.end());
    std::size_t same = 0;
    const std::vector<std::int64_t>& have = model_->pending;
    while (same < have.size() && same < wanted.size() && have[same] == wanted[same]) ++same;
    model_->posterior.truncate(model_->observed + static_cast<Index>(same));
    model_->pool->update();
    model_->best.resize(same + 1);
    const gp::Inputs inputs = inputs_of(wanted);
    for (std::size_t i = same; i < wanted.size(); ++i) {
      const auto at = model_->posterior.predict_without_slopes(inputs, static_cast<Index>(i));
      model_->best.push_back(std::min(model_->best.back(), at.mean));
      model_->posterior.append(inputs, static_cast<Index>(i));
    }
    model_->pool->update();
    model_->pending = wanted;
  }

  std::vector<double> spread(std::uint64_t index, Random& random) const {
    if (sobol_) return sobol_->at(index);
    std::vector<double> out(space().dimensions());
    for (double& unit : out) unit = random.uniform();
    return out;
  }

  // The best of `trials`, best first, by what the model makes of their results.
  std::vector<std::int64_t> best_of(const std::vector<std::int64_t>& trials) const {
    const Eigen::VectorXd& fitted = model_->posterior.fitted();
    std::vector<std::size_t> order(trials.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return fitted[static_cast<Index>(a)] < fitted[static_cast<Index>(b)];
    });
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < std::min(order.size(), kRefined); ++i) {
      out.push_back(trials[order[i]]);
    }
    return out;
  }

  // The whole cube, or every second time a box round `centre`.
  void set_box(const Candidate& centre) {
    const std::size_t dimensions = space().dimensions();
    const bool local = model_->version % 2 == 1;
    const double side = local ? gp::trust_region_side(outcomes_.stagnation(), dimensions) : 1;
    model_->low.assign(dimensions, 0);
    model_->high.assign(dimensions, 1);
    for (std::size_t i = 0; side < 1 && i < dimensions; ++i) {
      if (space().dimension(i).categorical()) continue;
      model_->low[i] = std::clamp(centre.unit[i] - 0.5 * side, 0.0, 1 - side);
      model_->high[i] = model_->low[i] + side;
    }
  }

  // The whole space if it is small; otherwise points that cover it, and points near the best.
  void make_candidates(const std::vector<std::int64_t>& trials) {
    std::vector<Candidate>& out = model_->candidates;
    const std::vector<double> middle(space().dimensions(), 0.5);
    const std::vector<std::int64_t> best = best_of(trials);
    set_box(gp::candidate_of(space(), outcomes_.point(best.front()), middle));
    if (space().size() <= kMostListed) {
      for (std::uint64_t i = 0; i < space().size(); ++i) {
        out.push_back(gp::candidate_of(space(), space().at(i), middle));
      }
      return;
    }
    const auto half = static_cast<std::size_t>(settings_.candidates) / 2 + 1;
    const auto version = static_cast<std::uint64_t>(model_->version);
    Random random(draw_key(seed(), Purpose::kModel), version);
    for (std::size_t i = 0; i < half; ++i) {
      std::vector<double> unit =
          spread((version + 1) * half + i + static_cast<std::uint64_t>(startup_), random);
      for (std::size_t d = 0; d < unit.size(); ++d) {
        unit[d] = model_->low[d] + unit[d] * (model_->high[d] - model_->low[d]);
      }
      out.push_back(gp::candidate_at(space(), std::move(unit)));
    }
    for (std::size_t i = 0; i < half; ++i) {
      const Point& point = outcomes_.point(best[i % best.size()]);
      out.push_back(gp::perturb(space(), gp::candidate_of(space(), point, out[i].unit), random));
    }
  }

  GpSettings settings_;
  std::vector<api::Objective> objectives_;
  gp::Axes axes_;
  gp::Outcomes outcomes_;
  std::int64_t startup_ = 0;
  std::optional<SobolSequence> sobol_;
  std::unique_ptr<Model> model_;
  std::optional<Fit> anchor_fit_;
  std::optional<Fit> fit_;
};

}  // namespace

std::unique_ptr<Sampler> make_gp(Space space, std::int64_t seed, GpSettings settings,
                                 std::vector<api::Objective> objectives) {
  return std::make_unique<GpSampler>(std::move(space), seed, settings, std::move(objectives));
}

}  // namespace fettle::search
