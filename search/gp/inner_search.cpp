#include "search/gp/inner_search.h"

#include <algorithm>
#include <numeric>

#include "search/gp/process/minimize.h"

namespace fettle::search::gp {
namespace {

constexpr int kEvaluations = 16;          // per climb
constexpr int kRounds = 2;                // of a climb and a step
constexpr double kTolerance = 1e-3;       // in log expected improvement
constexpr double kMaxCorrelation = 0.95;  // above it two starts would meet
constexpr std::size_t kLookedAt = 64;     // best candidates from which starts are chosen

std::vector<std::size_t> smooth_parameters(const Space& space, const Point& point) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (is_active(point[i]) && is_smooth(space.dimension(i))) out.push_back(i);
  }
  return out;
}

// Returns the term at the only row; subtracts its slope along the free parameters from `gradient`.
double add_term(const AcquisitionTerm& term, const Inputs& inputs,
                const std::vector<std::size_t>& free, Eigen::VectorXd& gradient) {
  Eigen::VectorXd slope;
  const double out = term.at(inputs, 0, slope);
  for (Index i = 0; i < gradient.size(); ++i) {
    gradient[i] -= slope[static_cast<Index>(free[static_cast<std::size_t>(i)])];
  }
  return out;
}

}  // namespace

double InnerSearch::gain(const Candidate& candidate) const {
  Inputs inputs(1, static_cast<Index>(space.dimensions()));
  inputs.set(0, space, candidate.point);
  std::vector<NormalMarginal> losses;
  for (const Posterior& posterior : posteriors) {
    const Posterior::Prediction at = posterior.predict_without_slopes(inputs, 0);
    losses.push_back({at.mean, at.sd});
  }
  return improvement.log_value(losses);
}

double InnerSearch::value(const Candidate& candidate) const {
  double out = gain(candidate);
  for (const AcquisitionTerm* term : terms) out += term->at(candidate.point);
  return out;
}

Candidate InnerSearch::climb(const Candidate& start) const {
  const std::vector<std::size_t> free = smooth_parameters(space, start.point);
  if (free.empty()) return start;
  const auto n = static_cast<Index>(free.size());
  Inputs inputs(1, static_cast<Index>(space.dimensions()));
  // The choices of `start`, and the parameters that it has, hold for the whole climb.
  inputs.set(0, space, start.point);
  Eigen::VectorXd from(n);
  Eigen::VectorXd least(n);
  Eigen::VectorXd most(n);
  for (Index i = 0; i < n; ++i) {
    const std::size_t axis = free[static_cast<std::size_t>(i)];
    from[i] = start.unit[axis];
    least[i] = low[axis];
    most[i] = high[axis];
  }
  // The negated value and its gradient: the chain rule over the mean and deviation of each process.
  const auto loss = [&](const Eigen::VectorXd& x, Eigen::VectorXd& gradient) {
    for (Index i = 0; i < n; ++i) {
      inputs.at(0, static_cast<Index>(free[static_cast<std::size_t>(i)])) = x[i];
    }
    std::vector<Posterior::Prediction> at;
    std::vector<NormalMarginal> losses;
    for (const Posterior& posterior : posteriors) {
      at.push_back(posterior.predict(inputs, 0));
      losses.push_back({at.back().mean, at.back().sd});
    }
    std::vector<NormalMarginal> slopes;
    double worth = improvement.log_value(losses, &slopes);
    gradient.setZero();  // of the negated value: add_term() subtracts slopes, too
    for (const AcquisitionTerm* term : terms) worth += add_term(*term, inputs, free, gradient);
    for (std::size_t k = 0; k < at.size(); ++k) {
      for (Index i = 0; i < n; ++i) {
        const auto axis = static_cast<Index>(free[static_cast<std::size_t>(i)]);
        gradient[i] -= slopes[k].mean * at[k].mean_slope[axis];
        gradient[i] -= slopes[k].sigma * at[k].sd_slope[axis];
      }
    }
    return -worth;
  };
  const Minimum found = minimize(loss, from, least, most, kEvaluations, kTolerance);
  std::vector<double> unit = start.unit;
  for (Index i = 0; i < n; ++i) unit[free[static_cast<std::size_t>(i)]] = found.x[i];
  // A parameter with many cells has moved as a continuum; candidate_at() takes it to a cell.
  return candidate_at(space, std::move(unit));
}

// Moves to the best neighbour in the discrete parameters; returns whether it is better.
bool InnerSearch::step(Candidate& candidate, double& value_here, Random& random) const {
  bool better = false;
  // All are neighbours of the point as it was: neighbours() is called once, before `candidate`
  // moves.
  for (Candidate& neighbour : neighbours(space, candidate, random)) {
    if (is_taken(neighbour.point)) continue;
    const double there = value(neighbour);
    if (there <= value_here) continue;
    value_here = there;
    candidate = std::move(neighbour);
    better = true;
  }
  return better;
}

Candidate InnerSearch::polish(const Candidate& start, Random& random) const {
  Candidate here = start;
  double value_here = value(here);
  for (int round = 0; round < kRounds; ++round) {
    Candidate climbed = climb(here);
    const double value_there = value(climbed);
    if (value_there > value_here && !is_taken(climbed.point)) {
      here = std::move(climbed);
      value_here = value_there;
    }
    // Only a changed discrete value makes another climb worth its time.
    if (!step(here, value_here, random)) break;
  }
  return here;
}

std::vector<double> InnerSearch::values_in(const std::vector<Pool>& pools) const {
  std::vector<Eigen::VectorXd> sds;
  for (const Pool& pool : pools) sds.push_back(pool.sd());
  std::vector<double> out;
  std::vector<NormalMarginal> losses(pools.size());
  for (Index row = 0; row < pools.front().size(); ++row) {
    for (std::size_t k = 0; k < pools.size(); ++k) losses[k] = {pools[k].mean()[row], sds[k][row]};
    out.push_back(improvement.log_value(losses));
  }
  return out;
}

std::optional<Candidate> InnerSearch::maximise(const std::vector<Pool>& pools,
                                               const std::vector<Candidate>& candidates, int starts,
                                               Random& random) const {
  std::vector<double> values = values_in(pools);
  for (const AcquisitionTerm* term : terms) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += term->at_candidate(static_cast<Index>(i));
    }
  }
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto better = [&](std::size_t a, std::size_t b) {
    return values[a] != values[b] ? values[a] > values[b] : a < b;
  };
  std::sort(order.begin(), order.end(), better);
  // The best candidates that are not too similar, among the first kLookedAt; always the best one.
  std::vector<std::size_t> chosen;
  std::size_t looked_at = 0;
  for (const std::size_t i : order) {
    if (chosen.size() >= static_cast<std::size_t>(starts)) break;
    if (!chosen.empty() && looked_at >= kLookedAt) break;
    if (is_taken(candidates[i].point)) continue;
    ++looked_at;
    const bool alike = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
      return std::all_of(pools.begin(), pools.end(), [&](const Pool& pool) {
        return pool.correlation(static_cast<Index>(i), static_cast<Index>(other)) > kMaxCorrelation;
      });
    });
    if (!alike) chosen.push_back(i);
  }
  std::optional<Candidate> out;
  double best_value = 0;
  for (const std::size_t start : chosen) {
    Candidate found = polish(candidates[start], random);
    const double value_found = value(found);
    if (out && value_found <= best_value) continue;
    best_value = value_found;
    out = std::move(found);
  }
  return out;
}

}  // namespace fettle::search::gp
