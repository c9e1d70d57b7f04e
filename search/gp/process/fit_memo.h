// FitMemo: a cache of fitted hyperparameters, keyed by the data of the fit. Samplers that are made
// anew for each suggestion (../rungs/rung_model.h) share one, so that the same fit is made once.
//
// Invariant: an answer equals a new fit's to the bit, since the whole of its input is the key. The
// oldest of kMost fits is forgotten. Not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "search/gp/process/kernel.h"

namespace fettle::search::gp {

class FitMemo {
 public:
  using Key = std::vector<double>;

  // Returns nullptr if this fit was not made, or was forgotten. Valid until add().
  const std::vector<Hyperparameters>* find(const Key& key) const {
    const auto found =
        std::find_if(fits_.begin(), fits_.end(), [&](const auto& fit) { return fit.first == key; });
    return found == fits_.end() ? nullptr : &found->second;
  }
  void add(Key key, std::vector<Hyperparameters> of_process) {
    if (fits_.size() == kMost) fits_.pop_front();
    fits_.emplace_back(std::move(key), std::move(of_process));
  }
  std::size_t size() const { return fits_.size(); }

 private:
  // Two for each bracket of a ladder, and again for a second number of trials.
  static constexpr std::size_t kMost = 32;
  std::deque<std::pair<Key, std::vector<Hyperparameters>>> fits_;
};

}  // namespace fettle::search::gp
