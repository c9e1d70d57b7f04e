#include "search/ehvi.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "search/normal.h"
#include "search/sobol_sequence.h"

namespace fettle::search {
namespace {

constexpr std::uint64_t kDrawKey = 0x65687669;  // any: the draws are the same for everybody

}  // namespace

double expected_improvement(double threshold, const NormalMarginal& loss) {
  if (threshold == -std::numeric_limits<double>::infinity()) return 0;
  const double gap = threshold - loss.mean;
  if (loss.sigma <= 0) return std::max(gap, 0.0);
  const double z = gap / loss.sigma;
  return std::max(gap * normal_cdf(z) + loss.sigma * normal_density(z), 0.0);
}

ExpectedHypervolume::ExpectedHypervolume(const std::vector<Losses>& points, Losses reference)
    : reference_(std::move(reference)) {
  const std::size_t objectives = reference_.size();
  CHECK(objectives >= 2 && objectives <= kMostObjectives, "a front has 2 to 8 objectives");
  const std::vector<std::size_t> fronts = front_numbers(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (fronts[i] == 0) front_.push_back(points[i]);
  }
  std::sort(front_.begin(), front_.end());
  front_.erase(std::unique(front_.begin(), front_.end()), front_.end());
  if (objectives == 2) return;
  const SobolSequence sequence(objectives, kDrawKey);
  for (std::size_t i = 0; i < kDraws; ++i) {
    Losses draw = sequence.at(i);
    // The middle of the cell that a coordinate stands for: 0 has no quantile.
    for (double& coordinate : draw) coordinate = normal_quantile(coordinate + 0x1p-33);
    draws_.push_back(std::move(draw));
  }
}

double ExpectedHypervolume::improvement(const std::vector<NormalMarginal>& losses) const {
  CHECK(losses.size() == reference_.size(), "one marginal an objective");
  return losses.size() == 2 ? exact(losses) : drawn(losses);
}

// The improvement is the part of the plane that the new point dominates and the front does not. A
// place (u, v) of it is dominated with probability P(Y1 < u) P(Y2 < v); the plane free of the front
// falls into strips between the first losses of neighbours, and over a strip both factors integrate
// to expected improvements.
double ExpectedHypervolume::exact(const std::vector<NormalMarginal>& losses) const {
  double out = 0;
  double left = 0;  // integral of P(Y1 < u) up to the strip
  double top = reference_[1];
  for (const Losses& point : front_) {
    if (point[0] >= reference_[0]) break;
    const double right = expected_improvement(point[0], losses[0]);
    out += (right - left) * expected_improvement(top, losses[1]);
    left = right;
    top = std::min(top, point[1]);
  }
  const double right = expected_improvement(reference_[0], losses[0]);
  return out + (right - left) * expected_improvement(top, losses[1]);
}

double ExpectedHypervolume::drawn(const std::vector<NormalMarginal>& losses) const {
  double sum = 0;
  Losses point(losses.size());
  for (const Losses& draw : draws_) {
    for (std::size_t i = 0; i < losses.size(); ++i) {
      point[i] = losses[i].mean + losses[i].sigma * draw[i];
    }
    sum += hypervolume_gain(front_, point, reference_).value_or(0);
  }
  return sum / static_cast<double>(draws_.size());
}

}  // namespace fettle::search
