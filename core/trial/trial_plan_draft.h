// TrialPlanDraft: the plan of a trial while it is made. A value type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/trial/trial.h"
#include "core/plan.h"

namespace fettle::core {

struct TrialPlanDraft {
  api::TrialStatus status;  // as it is once the plan is carried out
  std::vector<TrialAction> cleanups{};
  std::vector<TrialAction> commands{};
  std::vector<Note> notes{};
  std::optional<std::int64_t> wake_at_ms{};

  void note(EventType type, std::string reason, std::string message) {
    notes.push_back(Note{{type, std::move(reason), std::move(message)}});
  }
  void wake_at(std::int64_t at_ms) { wake_at_ms = std::min(at_ms, wake_at_ms.value_or(at_ms)); }
};

}  // namespace fettle::core
