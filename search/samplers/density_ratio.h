// DensityRatio: how much denser the good trials of a history lie at a point than the others: the
// model of a tree-structured Parzen estimator (Bergstra et al. 2011), multivariate and grouped.
//
// The best tenth of what ended (at most 25) are the good ones. Parameters that exist under the same
// condition are one group, modelled jointly over the trials in which it is active, with a split
// into good and bad of its own: what is good within a branch is learnt even where the branch is
// poor. Pending trials count as bad ("constant liar"), so that workers spread. How trials compare,
// also with several objectives: ranking.h. Of the bad ones the newest kMostBad count, so that the
// model costs the same after any number of trials. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/study.h"
#include "search/maths/ranking.h"
#include "search/samplers/parzen.h"
#include "search/search.h"
#include "search/space/columns.h"
#include "search/space/space.h"

namespace fettle::search {

class DensityRatio {
 public:
  // Results that are enough for a model.
  static constexpr std::size_t kEnough = 4;
  // What log_ratios() are, for explanations.
  static constexpr const char* kWords =
      "logarithm of how much denser the good trials lie here than the others";

  // Keeps a reference to `space`.
  DensityRatio(const Space& space, std::vector<api::Objective> objectives);

  // The fold, as FoldingSampler has it (fold.h).
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  std::size_t ended() const { return ended_.size(); }
  std::size_t pending() const { return pending_.size(); }
  // Goes up whenever what was drawn and weighed before is out of date.
  std::int64_t version() const { return version_; }

  // Models what is known by now. To be called after the fold has caught up, before anything below;
  // needs something that ended.
  void fit();

  // Points of which only one group's coordinates need be set, and logarithms of the densities of
  // the good and of the bad there, up to a factor; the bad without the pending trials.
  struct Candidates {
    std::vector<Point> points;
    std::vector<double> good;
    std::vector<double> bad;
  };
  Candidates with_densities(std::size_t group, std::vector<Point> points) const;
  // Logarithms of good over bad, the pending trials of now among the bad.
  std::vector<double> log_ratios(std::size_t group, const Candidates& candidates) const;
  // The same of whole points: the sums over their groups.
  std::vector<double> log_ratios(const std::vector<Point>& points) const;

  // From the density of the good: one group's coordinates.
  Point draw(std::size_t group, Random& random) const;
  // A whole point, group by group, since later groups depend on what earlier ones chose.
  // `of_group`: a point with a group's coordinates.
  template <class OfGroup>
  Point choose(const OfGroup& of_group) const {
    Point point(space_.dimensions(), kInactive);
    for (std::size_t g = 0; g < space_.groups().size(); ++g) {
      const std::vector<std::size_t>& group = space_.groups()[g];
      if (!space_.active(group.front(), point)) continue;
      const Point chosen = of_group(g);
      for (const std::size_t parameter : group) point[parameter] = chosen[parameter];
    }
    return point;
  }

  // Whether a pending trial has a group's coordinates of this point.
  bool is_pending(std::size_t group, const Point& point) const;

 private:
  struct Good {
    std::vector<std::int64_t> trials;  // ascending
    std::vector<double> weights;       // one in the mean
  };
  // Of one group, over the trials that ended.
  struct Model {
    Parzen good;
    Parzen bad;
  };

  Good good_trials(std::size_t group);
  std::vector<std::int64_t> bad_trials(std::size_t group,
                                       const std::vector<std::int64_t>& good) const;
  std::optional<Parzen> running_trials(std::size_t group) const;
  bool in_group(std::int64_t trial, std::size_t group) const;

  const Space& space_;
  std::vector<api::Objective> objectives_;
  Ranking ranking_;
  Columns columns_;
  std::vector<std::int64_t> pending_;  // ascending
  std::vector<std::int64_t> ended_;    // ascending
  std::int64_t version_ = 0;
  // Caches, of each group: empty after something ended, or the pending trials changed.
  std::vector<Model> models_;
  std::vector<std::optional<Parzen>> running_;
};

}  // namespace fettle::search
