#include "search/incremental_sampler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fettle::search {
namespace {

// Draws from the prior before a finite space is enumerated.
constexpr int kMaxDraws = 32;

}  // namespace

IncrementalSampler::IncrementalSampler(Space space, std::int64_t seed, bool random_order)
    : space_(std::move(space)), seed_(seed) {
  if (random_order && space_.finite())
    order_.emplace(space_.size(), draw_key(seed, Purpose::kOrder));
}

Suggestion IncrementalSampler::suggest(const History& history, std::int64_t n) {
  catch_up(history);
  if (enumerating_) next_untried();  // moves cursor_ past points tried for good
  const std::uint64_t cursor = cursor_;
  Suggestion out;
  for (std::int64_t i = 0; i < n; ++i) {
    // The number of the trial among the sampler's own: priors and points to try first do not count.
    const std::optional<Point> point = propose(trials_ - unnumbered_);
    if (!point) {
      out.exhausted = true;
      break;
    }
    out.points.push_back(space_.write(*point));
    add(&*point);
  }
  while (!pending_keys_.empty()) remove_pending();
  cursor_ = cursor;  // the caller may not create these points: they are not tried for good
  return out;
}

std::optional<Explanation> IncrementalSampler::explain(const History& history, const Json& point) {
  catch_up(history);
  const std::optional<Point> read = space_.read(point);
  // While points to try first are pending, a point is explained as the first one after them.
  return read ? explain_point(std::max<std::int64_t>(trials_ - unnumbered_, 0), *read)
              : std::nullopt;
}

// Adds the new entries of `history` to the cache; starts over if the cache is of another history.
void IncrementalSampler::catch_up(const History& history) {
  // A history that got shorter, or has other priors, is another one: read it from the start.
  if (history.trials.size() < static_cast<std::size_t>(trials_) ||
      history.events.size() < events_ || history.priors != priors_ ||
      history.unnumbered != unnumbered_) {
    reset();
    tried_.clear();
    trials_ = 0;
    events_ = 0;
    cursor_ = 0;
    priors_ = history.priors;
    unnumbered_ = history.unnumbered;
  }
  while (static_cast<std::size_t>(trials_) < history.trials.size()) {
    const std::optional<Point> point =
        space_.read(history.trials[static_cast<std::size_t>(trials_)]);
    add(point ? &*point : nullptr);
  }
  pending_keys_.clear();  // add() filled it, but trials of the history are not taken back
  for (; events_ < history.events.size(); ++events_) {
    const Event& event = history.events[events_];
    CHECK(event.trial >= 0 && event.trial < trials_, "an event is of a trial of its history");
    add_event(event);
  }
}

void IncrementalSampler::add(const Point* point) {
  std::optional<std::uint64_t> key;
  const bool here = trials_ >= priors_;  // points of priors may be tried again
  if (here && point != nullptr && tried_.insert(space_.key(*point)).second) {
    key = space_.key(*point);
  }
  pending_keys_.push_back(key);
  add_trial(point);
  ++trials_;
}

void IncrementalSampler::remove_pending() {
  if (pending_keys_.back()) tried_.erase(*pending_keys_.back());
  pending_keys_.pop_back();
  remove_trial();
  --trials_;
}

std::optional<Point> IncrementalSampler::draw_untried(std::int64_t trial) const {
  Random random(draw_key(seed_, Purpose::kPoint), static_cast<std::uint64_t>(trial));
  Point point;
  for (int i = 0; i < kMaxDraws; ++i) {
    point = space_.draw(random);
    if (!tried(point)) return point;
  }
  // A space without an enumeration has no alternative to the same point: it has almost no room (a
  // continuum between two neighbouring doubles).
  return space_.finite() ? next_untried() : std::optional(std::move(point));
}

std::optional<Point> IncrementalSampler::untried_at(const std::optional<std::vector<double>>& unit,
                                                    std::int64_t trial) const {
  if (unit) {
    Point point = space_.from_unit(*unit);
    if (!tried(point)) return point;
  }
  return draw_untried(trial);
}

std::optional<Point> IncrementalSampler::next_untried() const {
  enumerating_ = true;
  for (; cursor_ < space_.size(); ++cursor_) {
    Point point = space_.at(order_ ? order_->at(cursor_) : cursor_);
    if (!tried(point)) return point;
  }
  return std::nullopt;
}

}  // namespace fettle::search
