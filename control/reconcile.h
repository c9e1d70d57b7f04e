// What one look at one object came to. The two controllers return it to the Manager.
#pragma once

#include <cstdint>
#include <optional>

namespace fettle::control {

struct Looked {
  int actions = 0;                         // carried out
  std::optional<std::int64_t> wake_at_ms;  // look again then, even if nothing happens
  bool says_blocked = false;               // the Study's status has the condition Blocked
};

}  // namespace fettle::control
