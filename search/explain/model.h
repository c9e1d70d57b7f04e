// Model: what a Study's history says about its objective: the parameters that matter, their effect,
// and the expected value of a point. For people; no sampler uses it.
//
// It learns from all recorded values of trials, final or at a rung. The step is one more
// coordinate, and every answer is about the last step: so trials that were stopped early count,
// too, without looking worse than they are. Immutable after fit(); safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "search/explain/forest.h"
#include "search/explain/importance.h"
#include "search/search.h"
#include "search/space/space.h"

namespace fettle::explain {

// Fewer trials say nothing about parameters.
inline constexpr std::size_t kLeastTrials = 4;
// More values are thinned, evenly in the order of trials and their steps. The cost of a fit grows a
// little faster than their number.
inline constexpr std::size_t kMaxSamples = 4000;

// The model's expectation at a point.
struct Prediction {
  double mean = 0;
  double deviation = 0;
};

// The objective at one value of a parameter, averaged over all others (in trials where the
// parameter exists).
struct DependencePoint {
  Json value;
  double mean = 0;
  double deviation = 0;  // between trees
};

// The same over two parameters at once: one entry for each pair of values; the second parameter's
// vary fastest.
struct DependenceSurface {
  std::vector<Json> first;
  std::vector<Json> second;
  std::vector<double> means;
  std::vector<double> deviations;
};

class Model {
 public:
  // `objective` is an index into problem.objectives. kInvalid: an invalid space; fewer than
  // kLeastTrials trials with a value. More than `most_samples` values are thinned.
  static Result<Model> fit(const search::Problem& problem, const search::History& history,
                           std::size_t objective, std::size_t most_samples = kMaxSamples);

  // Predicts at the last step. Absent: the point is not in the space.
  std::optional<Prediction> predict(const Json& parameters) const;

  // Returns the share of random points whose expected value is below `mean`, in [0, 1]; equal
  // values count half. Cheap: fit() has computed their expected values.
  double share_below(double mean) const;

  // Columns are parameters, by index.
  Shares importance() const { return shares_of(forest_, last_step()); }
  std::vector<DependencePoint> dependence(std::size_t parameter) const;
  // Absent if one of the two exists only for some values of the other, or never beside it.
  std::optional<DependenceSurface> dependence(std::size_t first, std::size_t second) const;

  std::size_t trials() const { return trials_; }        // with values to learn from
  double quality() const { return forest_.quality(); }  // see Forest
  std::size_t clipped() const { return clipped_; }      // outliers

 private:
  // Preparation of values: outliers are clipped, and the rest is scaled into [-1, 1], so that
  // squares of any double are finite.
  struct Scaling {
    double centre = 0;  // the median; all four are in the objective's own unit
    double size = 1;    // the distance from the centre that is scaled to 1
    double low = 0;     // values below it, or above `high`, are clipped
    double high = 0;
  };

  explicit Model(search::Space space) : space_(std::move(space)) {}
  void set_columns();
  void set_contexts(const search::Problem& problem);
  void set_scaling(const std::vector<Sample>& samples);
  Place place_of(const search::Point& point) const;
  Place last_step() const;
  void set_random_means();
  std::vector<Place> contexts_of(std::size_t first, std::size_t second) const;
  std::vector<double> dependence_of(const Tree& tree, std::size_t parameter,
                                    const std::vector<double>& coordinates) const;

  search::Space space_;
  std::vector<Column> columns_;  // one for each parameter, then the step
  // For each parameter: settings of the parameters it depends on, under which it exists.
  std::vector<std::vector<Place>> contexts_;
  Forest forest_;
  Scaling scaling_;
  std::vector<double> random_means_;  // expected values of random points, ascending
  std::size_t trials_ = 0;
  std::size_t clipped_ = 0;
};

}  // namespace fettle::explain
