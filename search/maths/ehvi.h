// Expected hypervolume improvement: how much a point whose losses are only known as independent
// normals is expected to add to what a Pareto front dominates.
//
// For two and three objectives, exact, with its derivatives (Emmerich et al. 2011, in the form of
// Yang et al. 2019). Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "search/maths/pareto.h"

namespace fettle::search {

// What a model says of one loss; sigma >= 0, and 0 is certainty.
struct NormalMarginal {
  double mean = 0;
  double sigma = 0;
};

// E[max(threshold - Y, 0)]: the expected improvement of a single objective.
double expected_improvement(double threshold, const NormalMarginal& loss);

// The part of the space that no point dominates and that dominates the reference, as boxes that do
// not overlap. Of a front of n points of two objectives n + 1, of three at most 2 n + 1 boxes.
struct Box {
  Losses low;  // minus infinity where it is open
  Losses high;
  bool operator==(const Box&) const = default;
};
inline constexpr std::size_t kMostObjectivesInBoxes = 3;
// The most that the sampler ehvi takes.
inline constexpr std::size_t kMostEhviObjectives = kMostObjectivesInBoxes;
std::vector<Box> free_boxes(const std::vector<Losses>& points, const Losses& reference);

class ExpectedHypervolume {
 public:
  // `points`: losses seen, dominated ones too; two or three numbers each, like the reference.
  ExpectedHypervolume(const std::vector<Losses>& points, const Losses& reference);

  // One marginal an objective. `slopes`: where the derivatives by each mean and sigma > 0 go.
  double improvement(const std::vector<NormalMarginal>& losses,
                     std::vector<NormalMarginal>* slopes = nullptr) const;

 private:
  // A box by the places of its faces among `faces_` of each objective.
  struct Cell {
    std::vector<std::size_t> low;
    std::vector<std::size_t> high;
  };
  std::vector<std::vector<double>> faces_;  // of the boxes, ascending; by objective
  std::vector<Cell> cells_;
};

}  // namespace fettle::search
