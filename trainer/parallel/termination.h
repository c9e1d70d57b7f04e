// Termination: this process was told to end, and SIGKILL follows when its grace period is over. It
// then waits for other workers for a part of that period only, so that time is left to save.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "trainer/parallel/connection.h"

namespace fettle::trainer {

struct Termination {
  std::function<bool()> told;  // asked from any thread; empty: never
  std::chrono::milliseconds patience = std::chrono::seconds(10);  // with others, from then on
};

// The limit of one thread's waits.
class LastWait {
 public:
  explicit LastWait(Termination termination) : termination_(std::move(termination)) {}

  bool is_told() {
    if (!until_ && termination_.told && termination_.told()) until_ = in(termination_.patience);
    return until_.has_value();
  }
  // `deadline`, or earlier once this process was told to end.
  Deadline limit(Deadline deadline) { return is_told() ? std::min(deadline, *until_) : deadline; }

 private:
  const Termination termination_;
  std::optional<Deadline> until_;
};

}  // namespace fettle::trainer
