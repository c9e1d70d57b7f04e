// IncrementalSampler: the base of all samplers. It reads the history into a cache, entry by entry,
// keeps the set of points already tried, and asks a subclass for one point at a time.
//
// Invariant: between calls the cache is a function of the history alone. Points suggested within
// one call are added as pending trials and taken back at its end; the caller may or may not create
// them. Work per call is proportional to the new entries of the history and to the number of points
// requested.
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

// Purposes of random draws within one Study; each gets its own key.
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

class IncrementalSampler : public Sampler {
 public:
  Suggestion suggest(const History& history, std::int64_t n) final;
  std::optional<Explanation> explain(const History& history, const Json& point) final;
  const Space& space() const { return space_; }

 protected:
  // `random_order`: the points of a finite space are enumerated in random order instead of by
  // number, when draws only find tried points.
  IncrementalSampler(Space space, std::int64_t seed, bool random_order);

  // Returns the point of trial number `trial`, given the cached history; nullopt if no point is
  // left.
  virtual std::optional<Point> propose(std::int64_t trial) = 0;

  // Explains a point of the space for trial number `trial`, given the cached history.
  virtual std::optional<Explanation> explain_point(std::int64_t /*trial*/, const Point& /*point*/) {
    return std::nullopt;
  }

  // Update the cache. A trial whose parameters are outside this space has no point; remove_trial()
  // takes back the newest trial, reset() all.
  virtual void add_trial(const Point* /*point*/) {}
  virtual void remove_trial() {}
  virtual void add_event(const Event& /*event*/) {}
  virtual void reset() {}

  // The first priors() trials are from earlier Studies; the first unnumbered() also include points
  // to try first, which this sampler did not choose. add_trial() and events count them, propose()
  // does not.
  std::int64_t priors() const { return priors_; }
  std::int64_t unnumbered() const { return unnumbered_; }

  std::int64_t seed() const { return seed_; }
  bool tried(const Point& point) const { return tried_.count(space_.key(point)) > 0; }

  // Draws an untried point from the prior, keyed by the trial's number. If a bounded number of
  // draws finds only tried points, returns the next untried point of a finite space, or nullopt if
  // none is left.
  std::optional<Point> draw_untried(std::int64_t trial) const;
  // Returns the point at `unit` in the unit cube. If `unit` is nullopt or the point was tried,
  // draws one as draw_untried() does.
  std::optional<Point> untried_at(const std::optional<std::vector<double>>& unit,
                                  std::int64_t trial) const;
  // Returns the first untried point in the order of enumeration. Amortised constant time.
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
  std::int64_t trials_ = 0;                                 // priors included
  std::int64_t priors_ = 0;
  std::int64_t unnumbered_ = 0;
  std::size_t events_ = 0;
  // Every point before this position in the order was tried: a cache that next_untried() advances.
  mutable std::uint64_t cursor_ = 0;
  mutable bool enumerating_ = false;
};

}  // namespace fettle::search
