// Columns: the positions of trials along each parameter, kept in order, so that the neighbours of
// all trials are found in one pass.
//
// Holds the position of every trial. For the newest kWindow trials it also holds the ascending
// order along each parameter that has one and, on continua, the scale of a kernel of width
// kNarrowest there. Invariant: a function of the trials alone, whatever was pushed and popped
// before. Each new trial costs the logarithm of kWindow and a move of at most kWindow entries per
// parameter. Not synchronised.
#pragma once

#include <cstdint>
#include <vector>

#include "search/space/space.h"

namespace fettle::search {

class Columns {
 public:
  static constexpr std::int64_t kWindow = 3000;
  static constexpr double kNarrowest = 0.08;  // the width that most kernels end up with

  explicit Columns(const Space& space);

  void push(const Point* point);  // adds the next trial; nullptr: outside the space
  void pop();                     // removes the newest trial
  void clear();

  std::int64_t size() const { return size_; }
  std::int64_t window_begin() const { return size_ > kWindow ? size_ - kWindow : 0; }

  // The centre of the trial's value on the unit interval, or its choice; NaN if inactive.
  double at(std::size_t parameter, std::int64_t trial) const {
    return places_[parameter][static_cast<std::size_t>(trial)];
  }

  // The value that at() returns for a trial with this coordinate.
  double place(std::size_t parameter, double coordinate) const;

  bool in_window(std::int64_t trial) const { return trial >= window_begin(); }
  // unit_normal_log_scale() of a kernel of width kNarrowest at the trial (normal.h), which must be
  // in the window and active in this continuous parameter.
  double narrow_log_scale(std::size_t parameter, std::int64_t trial) const {
    return narrow_log_scales_[parameter][slot(trial)];
  }

  // Indices into `trials` (ascending, all active in `parameter`) ordered by position; ties by age.
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
  std::vector<std::vector<double>> places_;             // by parameter and trial
  std::vector<Order> orders_;                           // by parameter, over the window
  std::vector<std::vector<double>> narrow_log_scales_;  // by parameter and slot
};

}  // namespace fettle::search
