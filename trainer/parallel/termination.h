// Termination: this process was asked to end, and SIGKILL follows after its grace period. It then
// waits for other workers only for a part of that period, so that time is left to save.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "trainer/parallel/connection.h"

namespace fettle::trainer {

struct Termination {
  std::function<bool()> told;  // whether a signal asked for it; from any thread; empty: never
  std::chrono::milliseconds patience = std::chrono::seconds(10);  // for other workers, from then on
};

// Limits the waits of one thread.
class LastWait {
 public:
  explicit LastWait(Termination termination) : termination_(std::move(termination)) {}

  bool is_told() {
    if (!until_ && termination_.told && termination_.told()) until_ = in(termination_.patience);
    return until_.has_value();
  }
  // Returns `deadline`, or an earlier one once this process was asked to end.
  Deadline limit(Deadline deadline) { return is_told() ? std::min(deadline, *until_) : deadline; }

 private:
  const Termination termination_;
  std::optional<Deadline> until_;
};

}  // namespace fettle::trainer
