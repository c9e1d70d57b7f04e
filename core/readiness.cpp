#include "core/readiness.h"

#include <string>
#include <utility>

#include "core/conditions.h"

namespace fettle::core {
namespace {

enum class Stage { kInProgress, kCurrent, kStalled };

struct Readiness {
  Stage stage = Stage::kInProgress;
  std::string reason;
  std::string message;
};

Readiness as(Stage stage, const api::StatusCondition& condition) {
  return {stage, condition.reason, condition.message};
}

// The readiness of a Study that is neither over nor blocked nor suspended.
Readiness readiness_of_search(const api::StudyStatus& status) {
  if (is_true(status.conditions, "Waiting")) {
    return as(Stage::kInProgress, *find_condition(status.conditions, "Waiting"));
  }
  const api::StatusCondition* const running = find_condition(status.conditions, "Running");
  if (running == nullptr || !running->status) {
    return {Stage::kInProgress, "NotBegun", "the search has not begun"};
  }
  if (running->reason == "Waiting") return as(Stage::kInProgress, *running);  // all trials wait
  const api::TrialCounts& counts = status.trials;
  const bool has_begun = counts.running + counts.completed + counts.stopped + counts.failed > 0;
  if (!has_begun) return {Stage::kInProgress, "Starting", "the first trials are being started"};
  return as(Stage::kCurrent, *running);
}

Readiness readiness_of(const api::StudyStatus& status) {
  const auto condition = [&](const char* type) { return find_condition(status.conditions, type); };
  if (is_true(status.conditions, "Succeeded")) return as(Stage::kCurrent, *condition("Succeeded"));
  // It is over and has not Succeeded, so it has Failed.
  if (is_finished(status)) return as(Stage::kStalled, *condition("Failed"));
  if (is_true(status.conditions, "Blocked")) {
    return {Stage::kStalled, "Blocked", condition("Blocked")->message};
  }
  if (!is_true(status.conditions, "Suspended")) return readiness_of_search(status);
  if (status.trials.running > 0) {
    return {Stage::kInProgress, "Suspending", "spec.suspend is true; trials are being stopped"};
  }
  return {Stage::kCurrent, "Suspended", "spec.suspend is true"};
}

}  // namespace

bool is_readiness(const api::StatusCondition& condition) {
  return condition.type == "Ready" || condition.type == "Reconciling" ||
         condition.type == "Stalled";
}

void set_readiness(api::StudyStatus& status, std::int64_t now_ms) {
  const Readiness now = readiness_of(status);
  const auto set = [&](const char* type, bool value, WhenFalse when_false) {
    api::StatusCondition condition;
    condition.type = type;
    condition.status = value;
    condition.reason = now.reason;
    condition.message = now.message;
    set_condition(status.conditions, std::move(condition), now_ms, when_false);
  };
  // Without an entry for Ready, or for Reconciling, kstatus would take it for Current.
  set("Ready", now.stage == Stage::kCurrent, WhenFalse::kSayIt);
  set("Reconciling", now.stage == Stage::kInProgress, WhenFalse::kLeaveOut);
  set("Stalled", now.stage == Stage::kStalled, WhenFalse::kLeaveOut);
}

}  // namespace fettle::core
