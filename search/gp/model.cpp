#include "search/gp/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace fettle::search::gp {
namespace {

constexpr std::int64_t kWarpAfter = 4;  // outcomes a parameter: numbers are warped from then on
constexpr int kFitEvaluations = 40;     // of the likelihood, from each start
constexpr double kLongStart = 1.5;      // the second start's length scales: e^1.5 times the prior's
constexpr std::size_t kMostConditioned = 256;  // pending trials in the variance
constexpr std::size_t kWindowStep = 128;
// Share of the output scale that any fit may call noise, however little its results have. Noise
// above it comes from the results.
constexpr double kUsualNoise = 0.02;

}  // namespace

Fits::Fit Fits::fit(const Targets& targets, const Targets::Prefix& prefix, const Fit* warm) const {
  const bool warps = prefix.count >= kWarpAfter * static_cast<std::int64_t>(space_.dimensions());
  Fit out{prefix.count, {}};
  // Fits the next process. The second start is the anchor's fit of that process (`warm`,
  // fit_schedule.h), if there is one.
  const auto add = [&](const std::vector<std::int64_t>& trials, const Eigen::VectorXd& values) {
    const Inputs inputs = inputs_of(space_, targets, trials);
    const Likelihood likelihood(axes_, inputs, values);
    std::vector<Hyperparameters> starts = {likelihood.prior_mode(/*log_factor=*/0, warps),
                                           likelihood.prior_mode(kLongStart, warps)};
    const std::size_t index = out.of_process.size();
    if (warm != nullptr && index < warm->of_process.size()) {
      // The anchor's fit may precede warping; then numbers start unwarped.
      const Eigen::VectorXd unwarped = starts.back().warps;
      starts.back() = warm->of_process[index];
      if (starts.back().warps.size() != unwarped.size()) starts.back().warps = unwarped;
    }
    out.of_process.push_back(likelihood.fit(starts, kFitEvaluations));
  };
  // One process for each target, from the trials that have one; then, if any trial was infeasible,
  // the process of infeasibility (1 = infeasible, -1 = feasible), from all trials.
  for (Index k = 0; k < prefix.targets.cols(); ++k) add(prefix.valued, prefix.targets.col(k));
  if (prefix.infeasibility.size() > 0) add(prefix.fitted, prefix.infeasibility);
  return out;
}

// The whole input of fit(), besides the space. Each matrix follows its size, so that different
// inputs never make the same key.
FitMemo::Key key_of(const Inputs& fitted, const Targets::Prefix& prefix,
                    const std::vector<Hyperparameters>& warm) {
  FitMemo::Key out;
  const auto add = [&](const auto& values) {
    out.push_back(static_cast<double>(values.size()));
    out.insert(out.end(), values.data(), values.data() + values.size());
  };
  out.push_back(static_cast<double>(prefix.count));
  add(fitted.at);
  add(fitted.active);
  const std::set<std::int64_t> valued(prefix.valued.begin(), prefix.valued.end());
  for (const std::int64_t trial : prefix.fitted) out.push_back(valued.count(trial) > 0 ? 1 : 0);
  add(prefix.targets);
  add(prefix.infeasibility);
  for (const Hyperparameters& each : warm) add(each.pack());
  return out;
}

Fits::Fit Fits::remembered(const Targets& targets, const Targets::Prefix& prefix,
                           const Fit* warm) const {
  if (memo_ == nullptr) return fit(targets, prefix, warm);
  FitMemo::Key key = key_of(inputs_of(space_, targets, prefix.fitted), prefix,
                            warm != nullptr ? warm->of_process : std::vector<Hyperparameters>());
  if (const auto* known = memo_->find(key)) return {prefix.count, *known};
  Fit out = fit(targets, prefix, warm);
  memo_->add(std::move(key), out.of_process);
  return out;
}

const std::vector<Hyperparameters>& Fits::current(const Targets& targets) {
  const Targets::Prefix& anchor = targets.anchor();
  const Targets::Prefix& last = targets.last_fit();
  if (anchor.count > 0 && (!anchor_ || anchor_->count != anchor.count)) {
    anchor_ = remembered(targets, anchor, nullptr);
  }
  if (!last_ || last_->count != last.count) {
    last_ = remembered(targets, last, anchor.count > 0 ? &*anchor_ : nullptr);
  }
  return last_->of_process;
}

void Fits::reset() {
  anchor_.reset();
  last_.reset();
}

Model::Model(const Space& space, const Axes& axes, Targets& targets,
             const std::vector<Hyperparameters>& hyperparameters)
    : space_(space), version_(targets.version()), target_count_(targets.columns()) {
  const Targets::Prefix& fitted = targets.last_fit();
  const std::vector<std::int64_t>& ended = targets.ended();
  // A selection of the first fitted.count trials that ended, and every trial that ended later.
  std::vector<std::int64_t> all = fitted.trials;
  all.insert(all.end(), ended.begin() + fitted.count, ended.end());
  trials_ = targets.valued(all);
  // Rows of the fit's prefix come at once, later rows one by one. `first`: the number of `rows`, at
  // their beginning, that belong to the prefix.
  const auto first = [&](const std::vector<std::int64_t>& rows) {
    const std::set<std::int64_t> known(fitted.trials.begin(), fitted.trials.end());
    return static_cast<std::size_t>(std::count_if(
        rows.begin(), rows.end(), [&](std::int64_t trial) { return known.count(trial) > 0; }));
  };
  const Eigen::MatrixXd values = targets.values(trials_);
  for (std::size_t k = 0; k < target_count_; ++k) {
    add(axes, targets, hyperparameters[k], first(trials_), trials_,
        values.col(static_cast<Index>(k)));
  }
  means_.assign(trials_.size(), Losses(target_count_));
  for (std::size_t row = 0; row < means_.size(); ++row) {
    for (std::size_t k = 0; k < target_count_; ++k) {
      means_[row][k] = posteriors_[k].fitted()[static_cast<Index>(row)];
    }
  }
  // The last process, if any trial was infeasible, models infeasibility, which every ended trial
  // has.
  if (hyperparameters.size() > target_count_) {
    add(axes, targets, hyperparameters.back(), first(all), all, targets.infeasibility(all));
  }
  const std::vector<std::size_t> fronts = front_numbers(means_);
  for (std::size_t row = 0; row < fronts.size(); ++row) {
    if (fronts[row] == 0) front_.push_back(row);
  }
}

void Model::add(const Axes& axes, const Targets& targets, const Hyperparameters& hyperparameters,
                std::size_t first, const std::vector<std::int64_t>& trials,
                const Eigen::VectorXd& values) {
  const auto split = trials.begin() + static_cast<std::ptrdiff_t>(first);
  const Inputs newer = inputs_of(space_, targets, {split, trials.end()});
  Posterior posterior(axes, hyperparameters, inputs_of(space_, targets, {trials.begin(), split}),
                      static_cast<Index>(trials.size() + kMostConditioned));
  for (Index i = 0; i < newer.at.rows(); ++i) posterior.append(newer, i);
  posterior.set_targets(values);
  observed_.push_back(posterior.rows());
  posteriors_.push_back(std::move(posterior));
}

std::vector<std::int64_t> Model::best_trials(std::size_t most) const {
  std::vector<std::size_t> rows = front_;
  if (target_count_ == 1) {
    rows.resize(trials_.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return means_[a][0] < means_[b][0]; });
  std::vector<std::int64_t> out;
  const std::size_t count = std::min(rows.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    // For one target the lowest means, for a front a spread from end to end.
    out.push_back(trials_[rows[target_count_ == 1 ? i : i * rows.size() / count]]);
  }
  return out;
}

double Model::mean_of(std::int64_t trial) const {
  const auto found = std::find(trials_.begin(), trials_.end(), trial);
  CHECK(found != trials_.end(), "the trial has a target");
  return means_[static_cast<std::size_t>(found - trials_.begin())][0];
}

bool Model::is_noisy() const {
  return posteriors_.front().noise() > kUsualNoise * posteriors_.front().scale();
}

void Model::set_candidates(std::vector<Candidate> candidates) {
  candidates_ = std::move(candidates);
  const Inputs inputs = gp::inputs_of(space_, candidates_);
  for (const Posterior& posterior : posteriors_) pools_.emplace_back(posterior, inputs);
}

Losses Model::means_at(const Inputs& inputs, Index row) const {
  Losses out;
  for (std::size_t k = 0; k < target_count_; ++k) {
    out.push_back(posteriors_[k].predict_without_slopes(inputs, row).mean);
  }
  return out;
}

void Model::set_pending(const Targets& targets) {
  const std::set<std::int64_t>& all = targets.pending();
  // If there are too many to condition on, a window holds the newest. It moves in strides, since
  // rows are kept only for the common beginning of the old and new pending trials.
  std::size_t window = 0;
  while (all.size() - window > kMostConditioned) window += kWindowStep;
  const std::vector<std::int64_t> wanted(
      std::next(all.begin(), static_cast<std::ptrdiff_t>(window)), all.end());
  std::size_t same = 0;
  while (same < pending_.size() && same < wanted.size() && pending_[same] == wanted[same]) ++same;
  for (std::size_t k = 0; k < posteriors_.size(); ++k) {
    posteriors_[k].truncate(observed_[k] + static_cast<Index>(same));
  }
  for (Pool& pool : pools_) pool.update();  // before new rows replace the removed ones
  pending_means_.resize(same);
  const Inputs inputs = inputs_of(space_, targets, wanted);
  for (std::size_t i = same; i < wanted.size(); ++i) {
    pending_means_.push_back(means_at(inputs, static_cast<Index>(i)));
    for (Posterior& posterior : posteriors_) posterior.append(inputs, static_cast<Index>(i));
  }
  for (Pool& pool : pools_) pool.update();
  pending_ = wanted;
}

Improvement Model::improvement(double margin) const {
  std::vector<Losses> known;
  for (const std::size_t row : front_) known.push_back(means_[row]);
  if (target_count_ > 1) {
    // From the known trials alone: pending trials do not move it.
    const Losses reference = reference_of(known);
    known.insert(known.end(), pending_means_.begin(), pending_means_.end());
    return {known, reference};
  }
  double best = known.front()[0];
  for (const Losses& mean : pending_means_) best = std::min(best, mean[0]);
  return improvement_on(best, margin);
}

Improvement Model::improvement_on(double best, double margin, const Targets& targets,
                                  const std::function<bool(const Point&)>& admits) const {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (admits(targets.point(pending_[i]))) best = std::min(best, pending_means_[i][0]);
  }
  return improvement_on(best, margin);
}

Improvement Model::improvement_on(double best, double margin) const {
  // The more trials are pending, the less a small refinement beside them is worth.
  // All pending trials count here, admitted or not.
  const double lowered = margin * static_cast<double>(pending_.size());
  const Posterior& posterior = posteriors_.front();
  // The variance of the noise in the results, beyond the usual noise of any fit.
  const double noise = std::max(posterior.noise() - kUsualNoise * posterior.scale(), 0.0);
  return Improvement(best - lowered * std::sqrt(posterior.scale()), noise);
}

}  // namespace fettle::search::gp
