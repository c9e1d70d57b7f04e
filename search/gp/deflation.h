// Deflation: closes the basins of optima that a search has used up, and finds the best trial
// outside them.
//
// Named after the technique of finding further solutions of an equation by dividing out the known
// solutions (Farrell, Birkisson and Funke 2015, arXiv 1410.5620). The basin of a trial consists of
// the points that share its branch, its choices and its small integers, and have a prior
// correlation with it above kMinCorrelation. Keeps references to its arguments; not synchronised.
#pragma once

#include <optional>
#include <vector>

#include "search/gp/model.h"
#include "search/gp/targets.h"
#include "search/space/space.h"

namespace fettle::search::gp {

inline constexpr double kMinCorrelation = 0.5;  // prior correlation
inline constexpr int kMostClosed = 4;           // basins

class Deflation {
 public:
  // `model` has one target.
  Deflation(const Space& space, const Model& model, const Targets& targets)
      : space_(space), model_(model), targets_(targets) {}

  // Closes the basin of the best trial outside the closed basins. Returns false if nothing is left
  // to close or to improve: all trials lie in closed basins, or kMostClosed are closed.
  bool close_best();
  bool is_closed(const Point& point) const;
  // The lowest mean at a trial outside; nullopt if all trials lie in closed basins.
  std::optional<double> best() const;

 private:
  std::optional<std::int64_t> best_trial() const;
  bool share_basin(const Point& a, const Point& b) const;

  const Space& space_;
  const Model& model_;
  const Targets& targets_;
  std::vector<Point> closed_;
};

}  // namespace fettle::search::gp
