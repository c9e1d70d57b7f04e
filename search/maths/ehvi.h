// Expected hypervolume improvement: the expected growth of the volume that a Pareto front
// dominates, if a point is added whose losses are independent normals.
//
// Exact for two and three objectives, with derivatives (Emmerich et al. 2011, in the form of Yang
// et al. 2019). Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "search/maths/pareto.h"

namespace fettle::search {

// A model's prediction of one loss; sigma >= 0, where 0 is certainty.
struct NormalMarginal {
  double mean = 0;
  double sigma = 0;
};

// E[max(threshold - Y, 0)]: the expected improvement of a single objective.
double expected_improvement(double threshold, const NormalMarginal& loss);

// The region that dominates the reference and that no point dominates, as disjoint boxes. A front
// of n points gives n + 1 boxes for two objectives and at most 2 n + 1 for three.
struct Box {
  Losses low;  // minus infinity if open
  Losses high;
  bool operator==(const Box&) const = default;
};
inline constexpr std::size_t kMostObjectivesInBoxes = 3;
// The most objectives that the sampler ehvi takes.
inline constexpr std::size_t kMostEhviObjectives = kMostObjectivesInBoxes;
std::vector<Box> free_boxes(const std::vector<Losses>& points, const Losses& reference);

class ExpectedHypervolume {
 public:
  // `points`: all losses, also dominated; two or three numbers each, like the reference.
  ExpectedHypervolume(const std::vector<Losses>& points, const Losses& reference);

  // `losses`: one marginal per objective. `slopes`: receives the derivatives with respect to each
  // mean and sigma; requires sigma > 0.
  double improvement(const std::vector<NormalMarginal>& losses,
                     std::vector<NormalMarginal>* slopes = nullptr) const;

 private:
  // A box as indices of its faces in `faces_` of each objective.
  struct Cell {
    std::vector<std::size_t> low;
    std::vector<std::size_t> high;
  };
  std::vector<std::vector<double>> faces_;  // of the boxes, ascending; by objective
  std::vector<Cell> cells_;
};

}  // namespace fettle::search
