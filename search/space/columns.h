// Columns: where the trials lie along each parameter, kept in order, so that the neighbours of each
// are found in one walk however many there are.
//
// Holds the place of every trial and, of the newest kWindow, the ascending order along each
// parameter that has one and, on continua, what a kernel of the least width there is scaled by.
// Invariant: a function of the trials alone, whatever was pushed and popped on the way. One trial
// more costs the logarithm of kWindow and a move of at most kWindow entries a parameter. Not
// synchronised.
#pragma once

#include <cstdint>
#include <vector>

#include "search/space/space.h"

namespace fettle::search {

class Columns {
 public:
  static constexpr std::int64_t kWindow = 3000;
  static constexpr double kNarrowest = 0.08;  // the width that most kernels come to have

  explicit Columns(const Space& space);

  void push(const Point* point);  // of the next trial; nullptr: not of this space
  void pop();                     // the newest trial
  void clear();

  std::int64_t size() const { return size_; }
  std::int64_t window_begin() const { return size_ > kWindow ? size_ - kWindow : 0; }

  // The centre of the trial's value on the unit interval, or its choice; NaN where inactive.
  double at(std::size_t parameter, std::int64_t trial) const {
    return places_[parameter][static_cast<std::size_t>(trial)];
  }

  // What at() of a trial with this coordinate is.
  double place(std::size_t parameter, double coordinate) const;

  bool in_window(std::int64_t trial) const { return trial >= window_begin(); }
  // Of a trial in the window, active in a continuous parameter (normal.h).
  double narrow_log_scale(std::size_t parameter, std::int64_t trial) const {
    return narrow_log_scales_[parameter][slot(trial)];
  }

  // Positions in `trials`, which ascend and are active in `parameter`, by place; ties by age.
  std::vector<std::uint32_t> ascending(std::size_t parameter,
                                       const std::vector<std::int64_t>& trials) const;

 private:
  using Order = std::vector<std::int64_t>;
  static std::size_t slot(std::int64_t trial) { return static_cast<std::size_t>(trial % kWindow); }
  bool has_order(std::size_t parameter) const { return !space_.dimension(parameter).categorical(); }
  Order::iterator place_of(std::size_t parameter, std::int64_t trial);
  void insert(std::int64_t trial);
  void erase(std::int64_t trial);

  const Space& space_;
  std::int64_t size_ = 0;
  std::vector<std::vector<double>> places_;             // of each parameter, by trial
  std::vector<Order> orders_;                           // of each parameter, over the window
  std::vector<std::vector<double>> narrow_log_scales_;  // of each parameter, by slot
};

}  // namespace fettle::search
