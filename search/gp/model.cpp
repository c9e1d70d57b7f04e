#include "search/gp/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

namespace fettle::search::gp {
namespace {

constexpr std::int64_t kBendAfter = 4;  // outcomes a parameter: numbers are bent from there on
constexpr int kFitEvaluations = 40;     // of the likelihood, from each start
constexpr std::size_t kMostConditioned = 256;  // pending trials that the variance knows of
constexpr std::size_t kWindowStep = 128;

}  // namespace

Inputs inputs_of(const Space& space, const Outcomes& outcomes,
                 const std::vector<std::int64_t>& trials) {
  Inputs out(static_cast<Index>(trials.size()), static_cast<Index>(space.dimensions()));
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out.set(static_cast<Index>(i), space, outcomes.point(trials[i]));
  }
  return out;
}

Fits::Fit Fits::fit(const Outcomes& outcomes, const Outcomes::Prefix& prefix,
                    const Fit* warm) const {
  const Inputs inputs = inputs_of(space_, outcomes, prefix.fitted);
  const bool bends = prefix.count >= kBendAfter * static_cast<std::int64_t>(space_.dimensions());
  Fit out{prefix.count, {}};
  for (Index k = 0; k < prefix.targets.cols(); ++k) {
    const Eigen::VectorXd targets = prefix.targets.col(k);
    const Likelihood likelihood(axes_, inputs, targets);
    std::vector<Hyperparameters> starts = {likelihood.prior_mode(0, bends),
                                           likelihood.prior_mode(1.5, bends)};
    if (warm != nullptr) {
      const Eigen::VectorXd straight = starts.back().bends;
      starts.back() = warm->of_target[static_cast<std::size_t>(k)];
      if (starts.back().bends.size() != straight.size()) starts.back().bends = straight;
    }
    out.of_target.push_back(likelihood.fit(starts, kFitEvaluations));
  }
  return out;
}

const std::vector<Hyperparameters>& Fits::current(const Outcomes& outcomes) {
  const Outcomes::Prefix& anchor = outcomes.anchor();
  const Outcomes::Prefix& last = outcomes.last_fit();
  if (anchor.count > 0 && (!anchor_ || anchor_->count != anchor.count)) {
    anchor_ = fit(outcomes, anchor, nullptr);
  }
  if (!last_ || last_->count != last.count) {
    last_ = fit(outcomes, last, anchor.count > 0 ? &*anchor_ : nullptr);
  }
  return last_->of_target;
}

void Fits::reset() {
  anchor_.reset();
  last_.reset();
}

Model::Model(const Space& space, const Axes& axes, Outcomes& outcomes,
             const std::vector<Hyperparameters>& hyperparameters)
    : space_(space), version_(outcomes.version()) {
  const Outcomes::Prefix& fitted = outcomes.last_fit();
  const std::vector<std::int64_t>& ended = outcomes.ended();
  const std::vector<std::int64_t> newer(ended.begin() + fitted.count, ended.end());
  const auto capacity = static_cast<Index>(fitted.trials.size() + newer.size() + kMostConditioned);
  trials_ = fitted.trials;
  trials_.insert(trials_.end(), newer.begin(), newer.end());
  const Inputs first = inputs_of(space, outcomes, fitted.trials);
  const Inputs added = inputs_of(space, outcomes, newer);
  const Eigen::MatrixXd targets = outcomes.targets(trials_);
  means_.assign(trials_.size(), Losses(hyperparameters.size()));
  for (std::size_t k = 0; k < hyperparameters.size(); ++k) {
    Posterior posterior(axes, hyperparameters[k], first, capacity);
    for (Index i = 0; i < added.at.rows(); ++i) posterior.append(added, i);
    posterior.set_targets(targets.col(static_cast<Index>(k)));
    for (std::size_t row = 0; row < means_.size(); ++row) {
      means_[row][k] = posterior.fitted()[static_cast<Index>(row)];
    }
    posteriors_.push_back(std::move(posterior));
  }
  const std::vector<std::size_t> fronts = front_numbers(means_);
  for (std::size_t row = 0; row < fronts.size(); ++row) {
    if (fronts[row] == 0) front_.push_back(row);
  }
}

std::vector<std::int64_t> Model::best_trials(std::size_t most) const {
  std::vector<std::size_t> rows = front_;
  if (posteriors_.size() == 1) {
    rows.resize(trials_.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](std::size_t a, std::size_t b) { return means_[a][0] < means_[b][0]; });
  std::vector<std::int64_t> out;
  const std::size_t count = std::min(rows.size(), most);
  for (std::size_t i = 0; i < count; ++i) {
    // Of one target the lowest, of a front some from end to end.
    out.push_back(trials_[rows[posteriors_.size() == 1 ? i : i * rows.size() / count]]);
  }
  return out;
}

void Model::set_candidates(std::vector<Candidate> candidates) {
  candidates_ = std::move(candidates);
  const Inputs inputs = gp::inputs_of(space_, candidates_);
  for (const Posterior& posterior : posteriors_) pools_.emplace_back(posterior, inputs);
}

Losses Model::means_at(const Inputs& inputs, Index row) const {
  Losses out;
  for (const Posterior& posterior : posteriors_) {
    out.push_back(posterior.predict_without_slopes(inputs, row).mean);
  }
  return out;
}

void Model::set_pending(const Outcomes& outcomes) {
  const std::set<std::int64_t>& all = outcomes.pending();
  // More than can be conditioned on: a window over the newest, moved in strides.
  std::size_t window = 0;
  while (all.size() - window > kMostConditioned) window += kWindowStep;
  const std::vector<std::int64_t> wanted(
      std::next(all.begin(), static_cast<std::ptrdiff_t>(window)), all.end());
  std::size_t same = 0;
  while (same < pending_.size() && same < wanted.size() && pending_[same] == wanted[same]) ++same;
  for (Posterior& posterior : posteriors_) {
    posterior.truncate(static_cast<Index>(trials_.size() + same));
  }
  for (Pool& pool : pools_) pool.update();
  pending_means_.resize(same);
  const Inputs inputs = inputs_of(space_, outcomes, wanted);
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
  if (posteriors_.size() > 1) {
    const Losses reference = reference_of(known);
    known.insert(known.end(), pending_means_.begin(), pending_means_.end());
    return {known, reference};
  }
  double best = known.front()[0];
  for (const Losses& mean : pending_means_) best = std::min(best, mean[0]);
  // The more are on their way, the less is a last bit of refinement beside them worth.
  const double lowered = margin * static_cast<double>(pending_.size());
  return Improvement(best - lowered * std::sqrt(posteriors_.front().scale()));
}

}  // namespace fettle::search::gp
