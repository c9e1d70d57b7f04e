// Implementations: the implementation of each pass of each operation of a device
// (Backend::implementations). Belongs to the device's thread.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/profiling.h"

namespace fettle::kernels::cuda {

class Implementations {
 public:
  // A network has many layers of one shape, and a training a few sizes of batches.
  static constexpr std::size_t kMost = 1000;

  // Returns whether the pass is new; false beyond kMost.
  bool add(const Implementation& pass) {
    if (recent_.size() < kMost) recent_.push_back(pass);
    if (passes_.size() == kMost) return false;
    if (std::find(passes_.begin(), passes_.end(), pass) != passes_.end()) return false;
    passes_.push_back(pass);
    return true;
  }
  const std::vector<Implementation>& all() const { return passes_; }
  // Passes added since the last call, new or not.
  std::vector<Implementation> take_recent() { return std::exchange(recent_, {}); }

 private:
  std::vector<Implementation> passes_;  // in order of planning
  std::vector<Implementation> recent_;
};

}  // namespace fettle::kernels::cuda
