// Deflation: which known optima a search has used up, and what is to be improved outside of them.
//
// Named after the technique of finding further solutions of an equation by taking the known ones
// out of it (Farrell, Birkisson and Funke 2015, arXiv 1410.5620). The basin of a trial are the
// points that share its branch, its choices and its small integers, and that the prior correlates
// with it by more than kLikeness. Keeps references to its arguments; not synchronised.
#pragma once

#include <optional>
#include <vector>

#include "search/gp/model.h"
#include "search/gp/outcomes.h"
#include "search/space/space.h"

namespace fettle::search::gp {

inline constexpr double kLikeness = 0.5;  // prior correlation
inline constexpr int kMostClosed = 4;     // basins

class Deflation {
 public:
  // Of a model with one target.
  Deflation(const Space& space, const Model& model, const Outcomes& outcomes)
      : space_(space), model_(model), outcomes_(outcomes) {}

  // Closes the basin of the best trial outside of those that are closed. Nothing more is to be
  // closed, or improved, where it returns false: all trials lie in closed basins, or kMostClosed
  // are.
  bool close_best();
  bool is_closed(const Point& point) const;
  // The lowest mean at a trial outside; nothing where all lie in closed basins.
  std::optional<double> best() const;

 private:
  std::optional<std::int64_t> best_trial() const;
  bool share_basin(const Point& a, const Point& b) const;

  const Space& space_;
  const Model& model_;
  const Outcomes& outcomes_;
  std::vector<Point> closed_;
};

}  // namespace fettle::search::gp
