// ReconcileResult: the answer of the two controllers to the Manager.
#pragma once

#include <cstdint>
#include <optional>

namespace fettle::control {

struct ReconcileResult {
  int actions = 0;                         // executed
  std::optional<std::int64_t> wake_at_ms;  // reconcile again then, even if nothing changes
  // Whether the object's status, as it was read, said that it is refused: the condition Blocked of
  // a Study, Waiting with the reason Refused of a Trial.
  bool said_refused = false;
};

}  // namespace fettle::control
