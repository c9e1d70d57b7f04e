#include "search/space/columns.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "search/maths/normal.h"

namespace fettle::search {
namespace {

// Up to this number of trials, sorting is faster than a pass over the window.
constexpr std::size_t kFew = 64;
constexpr std::uint32_t kNotGiven = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Columns::Columns(const Space& space)
    : space_(space),
      places_(space.dimensions()),
      orders_(space.dimensions()),
      narrow_log_scales_(space.dimensions()) {}

Columns::Order::iterator Columns::place_of(std::size_t parameter, std::int64_t trial) {
  const std::vector<double>& places = places_[parameter];
  const double place = places[static_cast<std::size_t>(trial)];
  return std::partition_point(orders_[parameter].begin(), orders_[parameter].end(),
                              [&](std::int64_t other) {
                                const double its = places[static_cast<std::size_t>(other)];
                                return its < place || (its == place && other < trial);
                              });
}

void Columns::insert(std::int64_t trial) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!has_order(i) || !is_active(at(i, trial))) continue;
    orders_[i].insert(place_of(i, trial), trial);
    if (!space_.dimension(i).continuous()) continue;
    std::vector<double>& scales = narrow_log_scales_[i];
    scales.resize(std::max(scales.size(), slot(trial) + 1));
    scales[slot(trial)] = unit_normal_log_scale(at(i, trial), kNarrowest);
  }
}

void Columns::erase(std::int64_t trial) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (has_order(i) && is_active(at(i, trial))) orders_[i].erase(place_of(i, trial));
  }
}

double Columns::place(std::size_t parameter, double coordinate) const {
  if (!is_active(coordinate) || !has_order(parameter)) return coordinate;
  return space_.dimension(parameter).to_unit(coordinate).centre();
}

void Columns::push(const Point* point) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    places_[i].push_back(point == nullptr ? kInactive : place(i, (*point)[i]));
  }
  // The oldest trial leaves the window first: the new one takes its slot.
  if (size_ >= kWindow) erase(size_ - kWindow);
  insert(size_++);
}

void Columns::pop() {
  CHECK(size_ > 0, "there is a trial to take back");
  erase(--size_);
  if (size_ >= kWindow) insert(size_ - kWindow);  // it comes back into the window
  for (std::vector<double>& places : places_) places.pop_back();
}

void Columns::clear() {
  size_ = 0;
  for (std::vector<double>& places : places_) places.clear();
  for (Order& order : orders_) order.clear();
}

std::vector<std::uint32_t> Columns::ascending(std::size_t parameter,
                                              const std::vector<std::int64_t>& trials) const {
  const std::vector<double>& places = places_[parameter];
  std::vector<std::uint32_t> out;
  out.reserve(trials.size());
  if (trials.size() <= kFew || trials.front() < window_begin() || !has_order(parameter)) {
    out.resize(trials.size());
    std::iota(out.begin(), out.end(), 0U);
    std::stable_sort(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return places[static_cast<std::size_t>(trials[a])] <
             places[static_cast<std::size_t>(trials[b])];
    });
    return out;
  }
  // All of `trials` lie in the window, whose order along the parameter is known.
  const std::int64_t begin = window_begin();
  std::vector<std::uint32_t> positions(static_cast<std::size_t>(size_ - begin), kNotGiven);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    positions[static_cast<std::size_t>(trials[i] - begin)] = static_cast<std::uint32_t>(i);
  }
  for (const std::int64_t trial : orders_[parameter]) {
    const std::uint32_t position = positions[static_cast<std::size_t>(trial - begin)];
    if (position != kNotGiven) out.push_back(position);
  }
  return out;
}

}  // namespace fettle::search
