// FoldingSampler: what all samplers share. It folds the history into a cache, entry by entry, keeps
// the set of points already tried, and asks a subclass for one point at a time.
//
// Invariant: between calls the cache is a function of the history alone. Points suggested within
// one call are added as pending trials and taken back at its end; the caller may or may not create
// them. Work per call is proportional to what is new in the history and to the number of points
// asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/philox.h"
#include "search/maths/permutation.h"
#include "search/search.h"
#include "search/space/space.h"

namespace fettle::search {

// What the draws of one Study are for: each gets a key of its own.
enum class Purpose : std::uint64_t {
  kPoint = 1,
  kModel = 2,
  kOrder = 3,
  kScramble = 4,
  kPool = 5,
  kExplore = 6
};

inline std::uint64_t draw_key(std::int64_t seed, Purpose purpose) {
  return mix_keys(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(purpose));
}

class FoldingSampler : public Sampler {
 public:
  Suggestion suggest(const History& history, std::int64_t n) final;
  std::optional<Explanation> explain(const History& history, const Json& point) final;
  const Space& space() const { return space_; }

 protected:
  // `order`: the order in which the points of a finite space are enumerated when draws only find
  // tried ones; nothing = by number.
  FoldingSampler(Space space, std::int64_t seed, bool random_order);

  // The point of trial number `trial`, given what was folded; nothing: none is left.
  virtual std::optional<Point> propose(std::int64_t trial) = 0;

  // Explains a point of the space for trial number `trial`, given what was folded.
  virtual std::optional<Explanation> explain_point(std::int64_t /*trial*/, const Point& /*point*/) {
    return std::nullopt;
  }

  // The fold. A trial whose parameters are not of this space has no point; remove_trial() takes
  // back the newest trial, reset() all.
  virtual void add_trial(const Point* /*point*/) {}
  virtual void remove_trial() {}
  virtual void add_event(const Event& /*event*/) {}
  virtual void reset() {}

  // Trials of earlier Studies that come first, and with them points that others chose to try first:
  // add_trial() and events count them, propose() does not.
  std::int64_t priors() const { return priors_; }
  std::int64_t unnumbered() const { return unnumbered_; }

  std::int64_t seed() const { return seed_; }
  bool tried(const Point& point) const { return tried_.count(space_.key(point)) > 0; }

  // A point from the prior, keyed by the trial's number, that was not tried. If a bounded number of
  // draws only finds tried ones: the next untried point of a finite space, nothing if there is
  // none.
  std::optional<Point> draw_untried(std::int64_t trial) const;
  // The point at this place of the unit cube; another one, drawn like that, where there is no such
  // place or it was tried.
  std::optional<Point> untried_at(const std::optional<std::vector<double>>& unit,
                                  std::int64_t trial) const;
  // The first untried point in the order of enumeration. Amortised constant time.
  std::optional<Point> next_untried() const;

 private:
  void catch_up(const History& history);
  void add(const Point* point);
  void remove_pending();

  Space space_;
  std::int64_t seed_ = 0;
  std::optional<Permutation> order_;
  std::unordered_set<std::uint64_t> tried_;                 // keys
  std::vector<std::optional<std::uint64_t>> pending_keys_;  // added to tried_ within this call
  std::int64_t trials_ = 0;                                 // all of them
  std::int64_t priors_ = 0;
  std::int64_t unnumbered_ = 0;
  std::size_t events_ = 0;
  // All points before this place in the order were tried: a cache, moved forward by next_untried().
  mutable std::uint64_t cursor_ = 0;
  mutable bool enumerating_ = false;
};

}  // namespace fettle::search
