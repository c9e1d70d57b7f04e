#include "search/maths/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace fettle::search {
namespace {

// Half the difference, since the range of an objective may be wider than a double. For ratios of
// two.
double half_gap(double high, double low) { return 0.5 * high - 0.5 * low; }

bool better_everywhere(const Losses& point, const Losses& reference) {
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (!(point[i] < reference[i])) return false;
  }
  return true;
}

double box(const Losses& point, const Losses& reference, std::size_t objectives) {
  double out = 1;
  for (std::size_t i = 0; i < objectives; ++i) out *= reference[i] - point[i];
  return out;
}

// Hypervolumes in the first `objectives` dimensions; counts the work.
class Wfg {
 public:
  explicit Wfg(const Losses& reference) : reference_(reference) {}

  bool gave_up() const { return work_ > kMaxHypervolumeWork; }

  double volume(std::vector<Losses> points, std::size_t objectives) {
    if (points.empty() || gave_up()) return 0;
    if (objectives == 1) return reference_[0] - best_first(points);
    if (objectives == 2) return area(points);
    // Worst first along the last objective: every later point reaches at least as far there. So a
    // point adds its height in the last objective times the volume that it alone covers of the
    // others: exclusive().
    const std::size_t last = objectives - 1;
    std::sort(points.begin(), points.end(), [last](const Losses& a, const Losses& b) {
      return a[last] != b[last] ? a[last] > b[last] : a > b;
    });
    double out = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      out += (reference_[last] - points[i][last]) * exclusive(points, i, last);
    }
    return out;
  }

  // The volume that points[at] covers and no later point does.
  double exclusive(const std::vector<Losses>& points, std::size_t at, std::size_t objectives) {
    return box(points[at], reference_, objectives) -
           volume(limited(points, at, objectives), objectives);
  }

 private:
  static double best_first(const std::vector<Losses>& points) {
    double out = std::numeric_limits<double>::infinity();
    for (const Losses& point : points) out = std::min(out, point[0]);
    return out;
  }

  double area(std::vector<Losses>& points) const {
    std::sort(points.begin(), points.end());
    double out = 0;
    double height = reference_[1];
    for (const Losses& point : points) {
      // The points ascend in their first loss, so an earlier one dominates or equals this one.
      if (point[1] >= height) continue;
      out += (reference_[0] - point[0]) * (height - point[1]);
      height = point[1];
    }
    return out;
  }

  // The points after `at`, clipped to the region that it dominates; dominated points are removed.
  std::vector<Losses> limited(const std::vector<Losses>& points, std::size_t at,
                              std::size_t objectives) {
    std::vector<Losses> out;
    // After gave_up() the result does not matter: hypervolume() returns nullopt.
    for (std::size_t i = at + 1; i < points.size() && !gave_up(); ++i) {
      Losses cut(objectives);
      for (std::size_t j = 0; j < objectives; ++j) cut[j] = std::max(points[i][j], points[at][j]);
      work_ += out.size() + 1;
      const bool covered = std::any_of(out.begin(), out.end(), [&](const Losses& other) {
        return other == cut || dominates(other, cut);
      });
      if (covered) continue;
      std::erase_if(out, [&](const Losses& other) { return dominates(cut, other); });
      out.push_back(std::move(cut));
    }
    return out;
  }

  const Losses& reference_;
  std::size_t work_ = 0;
};

}  // namespace

bool dominates(const Losses& a, const Losses& b) {
  bool better_somewhere = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better_somewhere |= a[i] < b[i];
  }
  return better_somewhere;
}

// Visits points in lexicographic order: no point is dominated by a later one, so the points before
// it settle its front.
std::vector<std::size_t> front_numbers(const std::vector<Losses>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return points[a] < points[b]; });
  std::vector<std::vector<std::size_t>> fronts;
  std::vector<std::size_t> out(points.size(), 0);
  for (const std::size_t index : order) {
    std::size_t front = 0;
    const auto dominates_it = [&](std::size_t other) {
      return dominates(points[other], points[index]);
    };
    while (front < fronts.size() &&
           std::any_of(fronts[front].rbegin(), fronts[front].rend(), dominates_it)) {
      ++front;
    }
    if (front == fronts.size()) fronts.emplace_back();
    fronts[front].push_back(index);
    out[index] = front;
  }
  return out;
}

std::vector<double> crowding_distances(const std::vector<Losses>& front) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  const std::size_t count = front.size();
  if (count < 3) return std::vector<double>(count, kEnd);
  std::vector<double> out(count, 0);
  std::vector<std::size_t> order(count);
  for (std::size_t objective = 0; objective < front.front().size(); ++objective) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return front[a][objective] < front[b][objective];
    });
    const auto loss = [&](std::size_t place) { return front[order[place]][objective]; };
    const double range = half_gap(loss(count - 1), loss(0));
    out[order.front()] = kEnd;
    out[order.back()] = kEnd;
    if (range == 0) continue;
    for (std::size_t place = 1; place + 1 < count; ++place) {
      out[order[place]] += half_gap(loss(place + 1), loss(place - 1)) / range;
    }
  }
  return out;
}

std::optional<double> hypervolume(std::vector<Losses> points, const Losses& reference) {
  CHECK(!reference.empty(), "a hypervolume has at least one objective");
  std::erase_if(points, [&](const Losses& point) { return !better_everywhere(point, reference); });
  Wfg wfg(reference);
  const double out = wfg.volume(std::move(points), reference.size());
  return wfg.gave_up() || !std::isfinite(out) ? std::nullopt : std::optional(out);
}

}  // namespace fettle::search
