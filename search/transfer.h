// Transfer: estimates how much of the results of earlier Studies holds in this one.
//
// Reads this Study's results in order. When their number reaches kFirstCheck, and whenever it has
// doubled since, each result is compared with the prediction of the nearest priors:
// - all priors are shifted by the median of the differences, since another data set may be easier
//   or harder as a whole;
// - the share of priors kept is Kendall's rank correlation between results and predictions, minus
//   its standard error under independence. The kept priors are spread over all ranks, so that poor
//   regions stay known as such;
// - that share shrinks linearly with the number of results, to zero at kOutweighed. By then this
//   Study has its own results in the region that priors lead to, and they only hold the model back.
// Nothing changes between these checks. Not synchronised.
#pragma once

#include <cstddef>
#include <vector>

#include "api/study/study.h"
#include "search/space/space.h"

namespace fettle::search {

class Transfer {
 public:
  // A point and its result, in an earlier Study or in this one.
  struct Observation {
    Point point;
    std::vector<double> values;  // one per objective, finite
  };
  static constexpr std::size_t kFirstCheck = 4;   // fewer results say nothing about ranks
  static constexpr std::size_t kOutweighed = 16;  // with this many results priors do not count

  // `space` must outlive this.
  Transfer(const Space& space, const std::vector<api::Objective>& objectives,
           std::vector<Observation> priors);

  void clear();
  // Adds a result of this Study; returns whether in_force() and shifts() were computed anew. After
  // kOutweighed results nothing changes any more.
  bool add(Observation result);

  const std::vector<Observation>& priors() const { return priors_; }  // in the order given
  // Indices into priors() of the priors that count, ascending.
  const std::vector<std::size_t>& in_force() const { return in_force_; }
  // Added to the priors' values; one per objective.
  const std::vector<double>& shifts() const { return shifts_; }
  // Indices into priors(), best first by the first objective.
  const std::vector<std::size_t>& best_first() const { return best_first_; }

 private:
  double distance(const Point& a, const Point& b) const;
  std::vector<double> predict(const Point& point) const;
  void compare();

  const Space& space_;
  const std::vector<api::Objective> objectives_;
  const std::vector<Observation> priors_;
  std::vector<std::size_t> best_first_;
  std::vector<Observation> results_;
  std::size_t next_check_ = kFirstCheck;
  std::vector<std::size_t> in_force_;
  std::vector<double> shifts_;
};

}  // namespace fettle::search
