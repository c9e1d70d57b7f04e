#include "search/gp/process/rank_transform.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "search/maths/normal.h"

namespace fettle::search::gp {
namespace {

// Normal quantiles of the ranks; tied trials get the quantile of the middle of their tie.
std::vector<double> quantiles(const std::vector<Ranked>& order) {
  std::vector<double> out(order.size());
  const auto n = static_cast<double>(order.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && order[end].tied) ++end;
    const double z = normal_quantile(0.5 * static_cast<double>(i + end) / n);
    for (; i < end; ++i) out[i] = z;
  }
  return out;
}

// The advantage of each of the first `good` over the last of them, in units of the largest
// magnitude among them, so that nothing overflows.
std::vector<double> advantages(const std::vector<Ranked>& order, std::size_t good) {
  double largest = 0;
  for (std::size_t i = 0; i < good; ++i) largest = std::max(largest, std::abs(*order[i].loss));
  std::vector<double> out(good, 0.0);
  if (largest == 0) return out;
  const double reference = *order[good - 1].loss / largest;
  for (std::size_t i = 0; i < good; ++i) out[i] = reference - *order[i].loss / largest;
  return out;
}

// The divisor of advantages that puts the median of the good trials where a normal has it; if the
// median has no advantage, the divisor that does so for their mean. `advantage`: of each good trial
// over the last of them, best first. `z`: the normal quantiles of all, ascending. 0: all good
// trials are tied.
double unit_of(const std::vector<double>& advantage, const std::vector<double>& z) {
  const std::size_t good = advantage.size();
  const std::size_t middle = (good - 1) / 2;
  const double expected = z[good - 1] - z[middle];
  if (advantage[middle] > 0 && expected > 0) return advantage[middle] / expected;
  double sum = 0;
  double expected_sum = 0;
  for (std::size_t i = 0; i < good; ++i) {
    sum += advantage[i];
    expected_sum += z[good - 1] - z[i];
  }
  return sum > 0 && expected_sum > 0 ? sum / expected_sum : 0;
}

void standardise(std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double variance = 0;
  for (double& value : values) {
    value -= mean;
    variance += value * value / n;
  }
  if (variance <= 0) return;  // all are tied, and 0 by now
  for (double& value : values) value /= std::sqrt(variance);
}

}  // namespace

std::vector<double> rank_transform(const std::vector<Ranked>& order, std::size_t kept) {
  if (order.empty()) return {};
  std::vector<double> out = quantiles(order);
  const std::size_t most = std::max((order.size() + 1) / 2, std::min(kept, order.size()));
  std::size_t good = 0;
  while (good < most && order[good].loss) ++good;  // trials with a loss come first
  if (good > 0) {
    const std::vector<double> advantage = advantages(order, good);
    const double unit = unit_of(advantage, out);  // 0: all good trials are tied
    // From the last good trial, which keeps its quantile, to the best.
    for (std::size_t i = good - 1; i-- > 0;) {
      const double step = unit > 0 ? (advantage[i] - advantage[i + 1]) / unit : 0;
      out[i] = out[i + 1] - std::min(step, kLongestStep);
    }
  }
  standardise(out);
  return out;
}

double inverse_rank_transform(const std::vector<double>& targets, const std::vector<double>& losses,
                              double target) {
  const std::size_t count = losses.size();
  if (target >= targets[count - 1]) return losses[count - 1];
  std::size_t above = 0;                     // the first target that is larger
  while (targets[above] <= target) ++above;  // ends: the last one is larger
  // The line goes through these two targets; beyond the best, through the best and the middle one.
  const std::size_t from = above == 0 ? 0 : above - 1;
  const std::size_t to = above == 0 ? (count - 1) / 2 : above;
  const double width = targets[to] - targets[from];
  // Halves, and one factor after the other, since losses may be as far apart as doubles are.
  const double slope = width > 0 ? 2 * ((0.5 * losses[to] - 0.5 * losses[from]) / width) : 0;
  return losses[from] + slope * (target - targets[from]);
}

}  // namespace fettle::search::gp
