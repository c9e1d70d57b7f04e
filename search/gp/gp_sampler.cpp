// Bayesian optimisation: Gaussian processes over the tried points (model.h, kernel.h, likelihood.h,
// rank_transform.h), and the point of the largest expected improvement (improvement.h,
// inner_search.h). Its cost (expected_cost.h) and the density ratio of tpe (tpe_prior.h) count too,
// if the settings say so.
//
// Starts with the middle of the space and quasi-random points. Pending trials narrow the variance
// near them, so that workers spread. No point is tried twice. If almost nothing is left to gain,
// trials go to the next basin (deflation.h) and to draws from the prior; values that few trials
// have get their share (forced_exploration.h). Two or three objectives have a process each, and the
// sampler improves the hypervolume of their front. The hyperparameters belong to a prefix of the
// history (fit_schedule.h), so that trial i is a function of (seed, i) and the history; the
// Cholesky factors grow with each outcome and each pending trial.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "search/gp/candidates.h"
#include "search/gp/deflation.h"
#include "search/gp/expected_cost.h"
#include "search/gp/forced_exploration.h"
#include "search/gp/inner_search.h"
#include "search/gp/model.h"
#include "search/gp/targets.h"
#include "search/gp/tpe_prior.h"
#include "search/gp/trust_region.h"
#include "search/incremental_sampler.h"
#include "search/samplers/quasi_random_start.h"
#include "search/samplers/samplers.h"

namespace fettle::search {
namespace {

using gp::Candidate;
using gp::Index;

constexpr std::int64_t kLeastStartup = 4;  // unless the settings say otherwise
constexpr std::int64_t kMostStartup = 10;
constexpr std::size_t kRefined = 10;                // best points that candidates are near to
constexpr std::size_t kRefinedFront = 100;          // of several objectives
constexpr std::size_t kMostModelledPending = 1000;  // with more of them a model adds nothing
constexpr std::uint64_t kMostListed = 1000;         // a space of at most this size is listed whole
constexpr std::size_t kDrawn = 200;                 // candidates by tpe's model
constexpr double kPendingMargin = 0.002;            // for each, in standard deviations
constexpr double kLeastGain = 1e-3;  // worth a trial, as a share of the results' spread
// One trial in this many goes to the best point of a neglected slice. More of them do beside
// kManyPending others, which all go where the model expects most.
constexpr std::int64_t kExploreEvery = 4;
constexpr std::int64_t kExploreEveryBesideMany = 2;
constexpr std::size_t kManyPending = 4;
// Once the best basin is used up: one trial there, one from the prior, two in the next basin.
constexpr std::int64_t kTurns = 4;
constexpr int kStarts = 5;  // of the inner search
constexpr int kStartsWithPending = 3;

class GpSampler final : public IncrementalSampler {
 public:
  GpSampler(Space space, std::int64_t seed, const GpSettings& settings,
            std::vector<api::Objective> objectives)
      : IncrementalSampler(std::move(space), seed, /*random_order=*/true),
        settings_(settings),
        objectives_(std::move(objectives)),
        axes_(gp::axes_of(this->space())),  // `space` was moved from
        targets_(objectives_),
        expected_cost_(this->space(), settings.cost),
        tpe_prior_(this->space(), objectives_, settings.tpe_prior),
        sobol_(this->space().dimensions(), seed),
        fits_(this->space(), axes_, settings.memo) {
    startup_ = settings.startup_trials.value_or(usual_startup());
  }

  std::string description() const override {
    const std::size_t objectives = targets_.columns();
    const std::string what = objectives > 1 ? "expected gain of hypervolume of " +
                                                  std::to_string(objectives) + " objectives"
                                            : "log expected improvement";
    const std::string out = (objectives > 1 ? "ehvi" : "gp") + (" (Matern-5/2, " + what) + ", " +
                            std::to_string(startup_) + " startup trials" +
                            (settings_.cost ? ", costs count)" : ")");
    return settings_.tpe_prior ? "portfolio of " + out + " and tpe's opinion" : out;
  }

 protected:
  void add_trial(const Point* point) override {
    targets_.add_trial(point);
    expected_cost_.add_trial(point);
    tpe_prior_.add_trial(point);
  }
  void remove_trial() override {
    targets_.remove_trial();
    expected_cost_.remove_trial();
    tpe_prior_.remove_trial();
  }
  void add_event(const Event& event) override {
    targets_.add_event(event);
    expected_cost_.add_event(event);
    tpe_prior_.add_event(event);
  }
  void reset() override {
    targets_ = gp::Targets(objectives_);
    expected_cost_.reset();
    tpe_prior_.reset();
    model_.reset();
    fits_.reset();
  }

  std::optional<Explanation> explain_point(std::int64_t trial, const Point& point) override {
    if (starting(trial)) return QuasiRandomStart::explain(trial);
    update_model(trial);
    return explained(point);
  }

  std::optional<Point> propose(std::int64_t trial) override {
    if (starting(trial)) return start(trial);
    update_model(trial);
    // Independent of the draws of make_candidates(), which are keyed by version.
    const std::uint64_t key = mix_keys(draw_key(seed(), Purpose::kModel), 1);
    Random random(key, static_cast<std::uint64_t>(trial));
    if (const std::optional<Candidate> found = in_neglected_slice(trial, random)) {
      return found->point;
    }
    const gp::Improvement improvement = model_->improvement(kPendingMargin);
    const Found found = maximise(
        improvement, [](const Point&) { return true; }, random);
    if (!found.candidate) return draw_untried(trial);
    if (!is_worthless(found.gain, model_->best())) return found.candidate->point;
    const std::int64_t turn = trial % kTurns;
    const bool deflates = explores() && turn >= kTurns / 2;
    // Without deflation the basin and the prior take turns.
    if (!deflates) return turn % 2 == 1 ? draw_untried(trial) : found.candidate->point;
    const std::optional<Candidate> other = in_next_basin(random);
    return other ? other->point : draw_untried(trial);
  }

 private:
  // The admitted point of the largest expected gain, and that gain.
  struct Found {
    std::optional<Candidate> candidate;
    double gain = 0;
  };
  template <class Admits>
  Found maximise(const gp::Improvement& improvement, const Admits& admits, Random& random) const {
    const auto is_taken = [&](const Point& point) { return tried(point) || !admits(point); };
    const gp::InnerSearch search{space(), model_->posteriors(), improvement, low_, high_, is_taken,
                                 terms()};
    const int starts = model_->pending() == 0 ? kStarts : kStartsWithPending;
    Found out{search.maximise(model_->pools(), model_->candidates(), starts, random)};
    if (out.candidate) out.gain = search.gain(*out.candidate);  // without the terms
    return out;
  }

  // Whether slices and basins count: from the second revision on, for one objective.
  bool explores() const { return settings_.revision >= 2 && objectives_.size() == 1; }

  // Returns, for every kExploreEvery-th trial, the best point of a slice that few trials saw.
  std::optional<Candidate> in_neglected_slice(std::int64_t trial, Random& random) const {
    const std::int64_t every =
        model_->pending() < kManyPending ? kExploreEvery : kExploreEveryBesideMany;
    if (!explores() || trial % every != every - 1) return std::nullopt;
    const std::optional<gp::Slice> slice = gp::neglected_slice(space(), targets_);
    if (!slice) return std::nullopt;
    const gp::Improvement improvement = model_->improvement(kPendingMargin);
    return maximise(
               improvement, [&](const Point& point) { return slice->contains(point); }, random)
        .candidate;
  }

  // Returns the point of the largest expected gain on the best trial outside the used-up basin, or
  // outside that trial's basin as well.
  std::optional<Candidate> in_next_basin(Random& random) {
    gp::Deflation deflation(space(), *model_, targets_);
    // The first call closes the used-up basin, each later one a basin that offered too little.
    while (deflation.close_best()) {
      const std::optional<double> best = deflation.best();
      if (!best) break;
      const auto admits = [&](const Point& point) { return !deflation.is_closed(point); };
      const gp::Improvement improvement =
          model_->improvement_on(*best, kPendingMargin, targets_, admits);
      const Found found = maximise(improvement, admits, random);
      if (found.candidate && !is_worthless(found.gain, *best)) return found.candidate;
    }
    return std::nullopt;
  }

  // Returns the number of coefficients of a linear model, within bounds. Spaces with slices get the
  // maximum: in fewer trials a value of a choice may be too rare for the model to learn it.
  std::int64_t usual_startup() const {
    if (explores() && gp::has_slices(space())) return kMostStartup;
    const auto coefficients = static_cast<std::int64_t>(space().dimensions()) + 1;
    return std::clamp(coefficients, kLeastStartup, kMostStartup);
  }

  bool starting(std::int64_t trial) const {
    const auto ended = static_cast<std::int64_t>(targets_.ended().size());
    // Half of the results suffice: where many trials run at once, waiting for all would prolong the
    // start.
    return trial + priors() < startup_ || ended < std::max<std::int64_t>((startup_ + 1) / 2, 1) ||
           targets_.pending().size() > kMostModelledPending;
  }

  // First the middle, where people expect the best values; then points that cover the space.
  std::optional<Point> start(std::int64_t trial) const {
    if (trial == 0 && settings_.revision >= 2 && !tried(space().middle())) return space().middle();
    // Revision 1 takes the middle as it is, without a short decimal near it (Dimension::middle).
    std::optional<std::vector<double>> unit = sobol_.at(trial);
    if (unit && trial == 0) unit->assign(unit->size(), 0.5);
    return untried_at(unit, trial);
  }

  void update_model(std::int64_t trial) {
    // `trial` leaves out the first unnumbered() trials: priors() and the points tried first. All of
    // this Study's own trials use the budget; tpe learns from priors as well.
    expected_cost_.update(trial + unnumbered() - priors());
    tpe_prior_.update(trial + priors());
    const bool known = model_ != nullptr && model_->version() == targets_.version();
    if (!known || asked_tpe_ != tpe_prior_.counts()) {
      asked_tpe_ = tpe_prior_.counts();
      model_ = std::make_unique<gp::Model>(space(), axes_, targets_, fits_.current(targets_));
      model_->set_candidates(make_candidates());
      if (settings_.cost) {
        expected_cost_.set_candidates(gp::inputs_of(space(), model_->candidates()));
      }
    }
    model_->set_pending(targets_);
    if (tpe_prior_.counts()) tpe_prior_.set_candidates(model_->candidates());
  }

  // The terms that count beside the gain.
  std::vector<const gp::AcquisitionTerm*> terms() const {
    std::vector<const gp::AcquisitionTerm*> out;
    if (expected_cost_.counts()) out.push_back(&expected_cost_);
    if (tpe_prior_.counts()) out.push_back(&tpe_prior_);
    return out;
  }

  // Whether an expected improvement is next to nothing in the objective's own units. The rank
  // transform of the targets magnifies the range of many good results: without this check a search
  // would polish a local optimum for ever.
  bool is_worthless(double log_improvement, double best) {
    const std::optional<double> spread = targets_.spread();
    if (!spread) return false;
    const auto here = targets_.value_of(best);
    const auto there = targets_.value_of(best - std::exp(log_improvement));
    return here && there && std::abs(*here - *there) < kLeastGain * *spread;
  }

  // The mean is the value at the middle of the prediction, the deviation half the distance between
  // the values one standard deviation on either side of it.
  Explanation explained(const Point& point) {
    gp::Inputs inputs(1, static_cast<Index>(space().dimensions()));
    inputs.set(0, space(), point);
    std::vector<NormalMarginal> at;
    for (const gp::Posterior& posterior : model_->posteriors()) {
      const gp::Posterior::Prediction prediction = posterior.predict_without_slopes(inputs, 0);
      at.push_back({prediction.mean, prediction.sd});
    }
    Explanation out;
    out.acquisition = model_->improvement(kPendingMargin).log_value(at);
    out.words = targets_.columns() > 1
                    ? "logarithm of the expected gain of hypervolume, each objective in "
                      "standard deviations of its warped results"
                    : "logarithm of the expected improvement, less what noise hides of it, in "
                      "standard deviations of the warped results";
    if (at.size() > targets_.columns()) out.words += ", times the probability of being feasible";
    for (const gp::AcquisitionTerm* term : terms()) *out.acquisition += term->at(point);
    if (expected_cost_.counts()) out.words += ", less " + expected_cost_.words();
    if (tpe_prior_.counts()) out.words += ", plus " + tpe_prior_.words();
    out.cost = expected_cost_.cost(point);
    out.mean = targets_.value_of(at[0].mean);
    const auto low = targets_.value_of(at[0].mean - at[0].sigma);
    const auto high = targets_.value_of(at[0].mean + at[0].sigma);
    if (out.mean && low && high) out.deviation = std::abs(0.5 * *high - 0.5 * *low);
    return out;
  }

  // Returns point `index` of the Sobol sequence, or a draw if the sequence lacks this many
  // parameters.
  std::vector<double> spread(std::uint64_t index, Random& random) const {
    if (auto unit = sobol_.at(static_cast<std::int64_t>(index))) return *std::move(unit);
    std::vector<double> out(space().dimensions());
    for (double& unit : out) unit = random.uniform();
    return out;
  }

  // Sets low_ and high_, the box that is searched, in unit coordinates: the whole cube, or at every
  // odd number of outcomes the trust region (trust_region.h) round `centre`, a good trial.
  void set_box(const Candidate& centre) {
    const std::size_t dimensions = space().dimensions();
    const bool local = model_->version() % 2 == 1;
    const double side = local ? gp::trust_region_side(targets_.stagnation(), dimensions) : 1;
    low_.assign(dimensions, 0);
    high_.assign(dimensions, 1);
    for (std::size_t i = 0; side < 1 && i < dimensions; ++i) {
      if (space().dimension(i).categorical()) continue;
      low_[i] = std::clamp(centre.unit[i] - 0.5 * side, 0.0, 1 - side);
      high_[i] = low_[i] + side;
    }
  }

  // Returns the whole space if it is small; otherwise points that cover it, points near the best,
  // and points drawn by tpe's model.
  std::vector<Candidate> make_candidates() {
    const std::vector<double> middle(space().dimensions(), 0.5);
    const std::vector<std::int64_t> best =
        model_->best_trials(targets_.columns() > 1 ? kRefinedFront : kRefined);
    const auto version = static_cast<std::uint64_t>(model_->version());
    // starting() has seen a trial end, so `best` is not empty. For a front, each version takes
    // another part of it; half the version counts, since every second one has a trust region.
    const std::size_t part = targets_.columns() > 1 ? version / 2 % best.size() : 0;
    set_box(gp::candidate_of(space(), targets_.point(best[part]), middle));
    std::vector<Candidate> out;
    if (space().size() <= kMostListed) {
      for (std::uint64_t i = 0; i < space().size(); ++i) {
        out.push_back(gp::candidate_of(space(), space().at(i), middle));
      }
      return out;
    }
    const auto half = static_cast<std::size_t>(settings_.candidates) / 2 + 1;
    Random random(draw_key(seed(), Purpose::kModel), version);
    // Each version uses its own part of the sequence, after the points of the start.
    for (std::size_t i = 0; i < half; ++i) {
      std::vector<double> unit =
          spread((version + 1) * half + i + static_cast<std::uint64_t>(startup_), random);
      for (std::size_t d = 0; d < unit.size(); ++d) {
        unit[d] = low_[d] + unit[d] * (high_[d] - low_[d]);
      }
      out.push_back(gp::candidate_at(space(), std::move(unit)));
    }
    for (std::size_t i = 0; i < half; ++i) {
      const Point& point = targets_.point(best[i % best.size()]);
      out.push_back(gp::perturb(space(), gp::candidate_of(space(), point, out[i].unit), random));
    }
    if (tpe_prior_.counts()) {
      const std::vector<Point> drawn = tpe_prior_.draws(kDrawn, random);
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        out.push_back(gp::candidate_of(space(), drawn[i], out[i % half].unit));
      }
    }
    return out;
  }

  GpSettings settings_;
  std::vector<api::Objective> objectives_;
  gp::Axes axes_;
  gp::Targets targets_;
  gp::ExpectedCost expected_cost_;
  gp::TpePrior tpe_prior_;
  bool asked_tpe_ = false;  // whether its draws are among the model's candidates
  std::int64_t startup_ = 0;
  QuasiRandomStart sobol_;
  gp::Fits fits_;
  std::unique_ptr<gp::Model> model_;
  std::vector<double> low_;  // the box of the model's candidates
  std::vector<double> high_;
};

}  // namespace

std::unique_ptr<Sampler> make_gp(Space space, std::int64_t seed, const GpSettings& settings,
                                 std::vector<api::Objective> objectives) {
  return std::make_unique<GpSampler>(std::move(space), seed, settings, std::move(objectives));
}

std::shared_ptr<gp::FitMemo> make_fit_memo() { return std::make_shared<gp::FitMemo>(); }

}  // namespace fettle::search
