// Transfer: how much of what earlier Studies found holds in this one.
//
// A fold over this Study's results. When their number reaches kFirstCheck, and whenever it has
// doubled since, each is compared with what the priors near it say:
// - the median of the differences is what all priors are off by, another data set being easier or
//   harder as a whole; they are moved by it;
// - Kendall's rank correlation between results and what priors say, less the standard error that
//   it has where the two have nothing to do with each other, is the share of priors that is kept.
//   Those kept are spread over all ranks, so that poor regions stay known as such;
// - that share shrinks with every result of this Study's own, to nothing at kOutweighed. By then
//   the region that priors lead to is known at first hand, and they only hold the model back.
// In between nothing changes. Not synchronised.
#pragma once

#include <cstddef>
#include <vector>

#include "api/study.h"
#include "search/space/space.h"

namespace fettle::search {

class Transfer {
 public:
  // An outcome, whether of an earlier Study or of this one.
  struct Observation {
    Point point;
    std::vector<double> values;  // one an objective, finite
  };
  static constexpr std::size_t kFirstCheck = 4;   // fewer results say nothing about ranks
  static constexpr std::size_t kOutweighed = 16;  // results from which on priors do not count

  // `space` must outlive this.
  Transfer(const Space& space, const std::vector<api::Objective>& objectives,
           std::vector<Observation> priors);

  void clear();
  // A result of this Study; whether the answers below are others now. After kOutweighed of them
  // nothing changes any more.
  bool add(Observation result);

  const std::vector<Observation>& priors() const { return priors_; }  // as they were found
  // Of priors(), ascending: those that count.
  const std::vector<std::size_t>& in_force() const { return in_force_; }
  // To be added to their values, one an objective.
  const std::vector<double>& shifts() const { return shifts_; }
  // Of priors(), best first by the first objective.
  const std::vector<std::size_t>& best_first() const { return best_first_; }

 private:
  double distance(const Point& a, const Point& b) const;
  std::vector<double> foretold(const Point& point) const;
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
