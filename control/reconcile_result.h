// ReconcileResult: what the two controllers return to the Manager.
#pragma once

#include <cstdint>
#include <optional>

namespace fettle::control {

struct ReconcileResult {
  int actions = 0;                         // that were executed
  std::optional<std::int64_t> wake_at_ms;  // reconcile again then, even if nothing changes
  // The object's status said that it is refused, when it was read: the condition Blocked of a
  // Study, Waiting with the reason Refused of a Trial.
  bool said_refused = false;
};

}  // namespace fettle::control
