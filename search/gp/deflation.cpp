#include "search/gp/deflation.h"

#include <algorithm>
#include <cstdint>

#include "search/gp/forced_exploration.h"

namespace fettle::search::gp {

bool Deflation::share_basin(const Point& a, const Point& b) const {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_active(a[i]) != is_active(b[i])) return false;
    const Dimension& dimension = space_.dimension(i);
    const bool splits = dimension.categorical() || is_small(dimension);
    if (is_active(a[i]) && splits && a[i] != b[i]) return false;
  }
  Inputs both(2, static_cast<Index>(space_.dimensions()));
  both.set(0, space_, a);
  both.set(1, space_, b);
  // The first process is that of the only target.
  return model_.posteriors().front().correlation(both) > kMinCorrelation;
}

bool Deflation::is_closed(const Point& point) const {
  return std::any_of(closed_.begin(), closed_.end(),
                     [&](const Point& other) { return share_basin(point, other); });
}

std::optional<std::int64_t> Deflation::best_trial() const {
  for (const std::int64_t trial : model_.best_trials(kMostModelled)) {
    if (!is_closed(targets_.point(trial))) return trial;
  }
  return std::nullopt;
}

bool Deflation::close_best() {
  if (closed_.size() >= static_cast<std::size_t>(kMostClosed)) return false;
  const std::optional<std::int64_t> trial = best_trial();
  if (!trial) return false;
  closed_.push_back(targets_.point(*trial));
  return true;
}

std::optional<double> Deflation::best() const {
  const std::optional<std::int64_t> trial = best_trial();
  return trial ? std::optional(model_.mean_of(*trial)) : std::nullopt;
}

}  // namespace fettle::search::gp
