// ReconcileResult: what the two controllers return to the Manager.
#pragma once

#include <cstdint>
#include <optional>

namespace fettle::control {

struct ReconcileResult {
  int actions = 0;                         // that were executed
  std::optional<std::int64_t> wake_at_ms;  // reconcile again then, even if nothing changes
  bool has_blocked_condition = false;      // the Study's status has the condition Blocked
};

}  // namespace fettle::control
