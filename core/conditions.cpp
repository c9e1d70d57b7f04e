// metav1.Condition semantics over a plain list.
#include "core/conditions.h"

#include <utility>

namespace fettle::core {

using api::StatusCondition;

namespace {

std::string without_digits(std::string words) {
  std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
  return words;
}

}  // namespace

bool same_reason(const std::string& a, const std::string& b) {
  return without_digits(a) == without_digits(b);
}

const StatusCondition* find_condition(const Conditions& conditions, const std::string& type) {
  for (const StatusCondition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

bool is_true(const Conditions& conditions, const std::string& type) {
  const StatusCondition* condition = find_condition(conditions, type);
  return condition != nullptr && condition->status;
}

// Version 0.1 set Failed with the reason Unreadable on a Study that it could not read. Such a Study
// is not over.
bool is_finished(const api::StudyStatus& status) {
  if (is_true(status.conditions, "Succeeded")) return true;
  const StatusCondition* failed = find_condition(status.conditions, "Failed");
  return failed != nullptr && failed->status && failed->reason != "Unreadable";
}

void set_condition(Conditions& conditions, StatusCondition wanted, std::int64_t now_ms,
                   WhenFalse when_false) {
  wanted.since_ms = now_ms;
  for (StatusCondition& condition : conditions) {
    if (condition.type != wanted.type) continue;
    if (condition.status == wanted.status) wanted.since_ms = condition.since_ms;
    condition = std::move(wanted);
    return;
  }
  const bool is_said = wanted.status || when_false == WhenFalse::kSayIt;
  if (is_said) conditions.push_back(std::move(wanted));
}

void end_conditions(Conditions& conditions, bool failed, const std::string& reason,
                    const std::string& message, std::int64_t now_ms) {
  const auto set = [&](const char* type, bool status, const std::string& why,
                       const std::string& words) {
    set_condition(conditions, {.type = type, .status = status, .reason = why, .message = words},
                  now_ms);
  };
  set("Waiting", false, "Ended", "no run is wanted");
  set(failed ? "Complete" : "Failed", false, reason, "it ended otherwise");
  set(failed ? "Failed" : "Complete", true, reason, message);
}

}  // namespace fettle::core
