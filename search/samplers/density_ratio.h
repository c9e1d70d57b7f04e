// DensityRatio: the density of the good trials of a history at a point, divided by the density of
// the others: the model of a tree-structured Parzen estimator (Bergstra et al. 2011), multivariate
// and grouped.
//
// The best tenth of the ended trials (at most 25) are good. Parameters that exist under the same
// condition form one group, modelled jointly over the trials in which it is active, with its own
// split into good and bad: good values within a branch are learnt even if the branch is poor.
// Pending trials count as bad ("constant liar"), so that workers spread. How trials compare, also
// with several objectives: ranking.h. Only the newest kMostBad bad trials count, so that the cost
// of the model is bounded. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/study/study.h"
#include "search/maths/ranking.h"
#include "search/samplers/parzen.h"
#include "search/search.h"
#include "search/space/columns.h"
#include "search/space/space.h"

namespace fettle::search {

class DensityRatio {
 public:
  // Ended trials that a model needs.
  static constexpr std::size_t kEnough = 4;
  // The meaning of log_ratios(), for explanations.
  static constexpr const char* kWords =
      "logarithm of how much denser the good trials lie here than the others";

  // Keeps a reference to `space`.
  DensityRatio(const Space& space, std::vector<api::Objective> objectives);

  // Update the state, as in IncrementalSampler (incremental_sampler.h).
  void add_trial(const Point* point);
  void remove_trial();
  void add_event(const Event& event);
  void reset();

  std::size_t ended() const { return ended_.size(); }
  std::size_t pending() const { return pending_.size(); }
  // Increases whenever earlier draws and densities are out of date.
  std::int64_t version() const { return version_; }

  // Fits the models to the current history. Call it after the state is up to date and before any
  // function below; at least one trial must have ended.
  void fit();

  // Points (only one group's coordinates need be set) with the logarithms of the good and bad
  // densities there, up to a factor. `bad` excludes the pending trials.
  struct Candidates {
    std::vector<Point> points;
    std::vector<double> good;
    std::vector<double> bad;
  };
  Candidates with_densities(std::size_t group, std::vector<Point> points) const;
  // Logarithms of good over bad, with the current pending trials among the bad.
  std::vector<double> log_ratios(std::size_t group, const Candidates& candidates) const;
  // The same for whole points: the sums over their groups.
  std::vector<double> log_ratios(const std::vector<Point>& points) const;

  // Draws one group's coordinates from the good density.
  Point draw(std::size_t group, Random& random) const;
  // Chooses a whole point group by group, since later groups depend on the choices in earlier
  // groups. `of_group`: returns a point with a group's coordinates.
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

  // Whether a pending trial has the same coordinates in this group as `point`.
  bool is_pending(std::size_t group, const Point& point) const;

 private:
  struct Good {
    std::vector<std::int64_t> trials;  // ascending
    std::vector<double> weights;       // with mean 1
  };
  // The densities of one group, over the ended trials.
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
  // Caches by group: cleared when a trial ends or the pending trials change.
  std::vector<Model> models_;
  std::vector<std::optional<Parzen>> running_;
};

}  // namespace fettle::search
