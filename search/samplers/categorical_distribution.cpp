#include "search/samplers/categorical_distribution.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fettle::search {
namespace {

constexpr double kTiny = 1e-8;
constexpr double kSignalToNoise = 1.5;  // ASNG's target
constexpr double kKept = 0.73;          // probability that no parameter leaves its favourite

// Log-rank weights of the better half, summing to 1; equal losses share their weights.
std::vector<double> weights_of(const std::vector<RankedChoices>& generation) {
  const std::size_t parents = generation.size() / 2;
  std::vector<double> out(generation.size(), 0);
  double sum = 0;
  for (std::size_t i = 0; i < parents; ++i) {
    out[i] = std::log((static_cast<double>(generation.size()) + 1) / 2) -
             std::log(static_cast<double>(i) + 1);
    sum += out[i];
  }
  for (double& weight : out) weight /= sum;
  for (std::size_t first = 0; first < out.size();) {
    std::size_t end = first + 1;
    double total = out[first];
    for (; end < out.size() && generation[end].ties_with_previous; ++end) total += out[end];
    if (end - first > 1) {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(first),
                out.begin() + static_cast<std::ptrdiff_t>(end),
                total / static_cast<double>(end - first));
    }
    first = end;
  }
  return out;
}

}  // namespace

CategoricalDistribution::CategoricalDistribution(const std::vector<std::size_t>& sizes) {
  std::size_t free = 0;
  for (const std::size_t size : sizes) {
    CHECK(size >= 2, "a choice is between two values or more");
    shares_.emplace_back(size, 1 / static_cast<double>(size));
    free += size - 1;
  }
  path_.assign(free, 0);
}

Choices CategoricalDistribution::draw(Random& random) const {
  Choices out;
  for (const std::vector<double>& shares : shares_) {
    double left = random.uniform();
    std::size_t choice = 0;
    while (choice + 1 < shares.size() && left >= shares[choice]) left -= shares[choice++];
    out.emplace_back(choice);
  }
  return out;
}

void CategoricalDistribution::update(const std::vector<RankedChoices>& generation) {
  if (shares_.empty()) return;
  // Shares move along the gradient by step_, whatever the gradient's length: it is normalised in
  // coordinates in which length measures the movement of the distribution.
  const std::vector<std::vector<double>> step = gradient(generation);
  const std::vector<double> direction = in_fisher_coordinates(step);
  double length = 0;
  for (const double part : direction) length += part * part;
  length = std::sqrt(length);
  if (length < kTiny) return;  // all losses equal: nothing to learn
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    for (std::size_t k = 0; k < shares_[i].size(); ++k) {
      shares_[i][k] += step_ * step[i][k] / (length + kTiny);
    }
  }
  adapt_step(direction, length);
  keep_floors();
}

// The natural gradient of the expected weight: for each share the sum over the generation of weight
// * ((the choice is this one) - share). A trial without the parameter does not contribute.
std::vector<std::vector<double>> CategoricalDistribution::gradient(
    const std::vector<RankedChoices>& generation) const {
  const std::vector<double> weights = weights_of(generation);
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    double active = 0;
    std::vector<double> step(shares_[i].size(), 0);
    for (std::size_t at = 0; at < generation.size(); ++at) {
      const std::optional<std::size_t>& choice = generation[at].choices[i];
      if (!choice) continue;
      step[*choice] += weights[at];
      active += weights[at];
    }
    for (std::size_t k = 0; k < step.size(); ++k) step[k] -= active * shares_[i][k];
    out.push_back(std::move(step));
  }
  return out;
}

// Transforms the gradient to coordinates in which its length measures the movement of the
// distribution: times the square root of the Fisher information (Akimoto et al. 2019, appendix B).
std::vector<double> CategoricalDistribution::in_fisher_coordinates(
    const std::vector<std::vector<double>>& gradient) const {
  std::vector<double> out;
  out.reserve(path_.size());
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const std::vector<double>& shares = shares_[i];
    const double last = shares.back();
    double sum = 0;
    for (std::size_t k = 0; k + 1 < shares.size(); ++k) sum += gradient[i][k];
    for (std::size_t k = 0; k + 1 < shares.size(); ++k) {
      const double root = std::sqrt(shares[k]);
      out.push_back(gradient[i][k] / root + root * sum / (last + std::sqrt(last)));
    }
  }
  return out;
}

void CategoricalDistribution::adapt_step(const std::vector<double>& direction, double length) {
  step_ = 1 / trust_;
  const double rate = std::min(step_ / std::sqrt(static_cast<double>(path_.size())), 1.0);
  double path_length = 0;
  for (std::size_t i = 0; i < path_.size(); ++i) {
    path_[i] = (1 - rate) * path_[i] + std::sqrt(rate * (2 - rate)) * direction[i] / length;
    path_length += path_[i] * path_[i];
  }
  path_weight_ = (1 - rate) * (1 - rate) * path_weight_ + rate * (2 - rate);
  // path_weight_ is the squared length that the path has on average if directions are random.
  trust_ *= std::exp(rate * (path_weight_ - path_length / kSignalToNoise));
}

// Raises shares to their floor and takes the added amount back from all shares, in proportion to
// their excess over the floor. With p parameters, each leaves its favourite with a probability of
// at least 1 - kKept^(1/p), divided among its other choices.
void CategoricalDistribution::keep_floors() {
  const double escape = 1 - std::pow(kKept, 1 / static_cast<double>(shares_.size()));
  for (std::vector<double>& shares : shares_) {
    const auto count = static_cast<double>(shares.size());
    const double floor = escape / (count - 1);  // the constructor checks count >= 2
    double sum = 0;
    for (double& share : shares) {
      share = std::max(share, floor);
      sum += share;
    }
    const double above = sum - floor * count;  // > 0: sum >= 1, and all floors together are < 1
    double total = 0;                          // 1 except for rounding
    for (double& share : shares) {
      share -= (sum - 1) * (share - floor) / above;
      total += share;
    }
    for (double& share : shares) share /= total;
  }
}

void CategoricalDistribution::favour(const std::vector<Choices>& best) {
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    std::vector<double> counts(shares_[i].size(), 0);
    double total = 0;
    for (const Choices& choices : best) {
      if (!choices[i]) continue;
      counts[*choices[i]] += 1;
      total += 1;
    }
    if (total == 0) continue;  // no trial in `best` has the parameter
    for (std::size_t k = 0; k < counts.size(); ++k) {
      shares_[i][k] = 0.5 * shares_[i][k] + 0.5 * counts[k] / total;
    }
  }
  if (!shares_.empty()) keep_floors();
}

}  // namespace fettle::search
