// Conditions as Kubernetes keeps them: one for each type, `since_ms` moves only when `status` does.
// Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/study/study.h"

namespace fettle::core {

// The reason of a Complete trial whose last report is of an earlier step than it was asked for.
inline constexpr const char* kShortOfUntilStep = "ShortOfUntilStep";

// The reason of the warning that a Study needs checkpoints, and nothing keeps them.
inline constexpr const char* kNoDurableCheckpoints = "NoDurableCheckpoints";

// Reasons of the condition Waiting that do not mean a lack of room: a retry is due later, or the
// run takes long to start.
inline constexpr const char* kBackOff = "BackOff";
inline constexpr const char* kStarting = "Starting";

using Conditions = std::vector<api::StatusCondition>;

const api::StatusCondition* find_condition(const Conditions& conditions, const std::string& type);

bool is_true(const Conditions& conditions, const std::string& type);

// Whether the Study is over: nothing will ever happen again unless its spec changes.
bool is_finished(const api::StudyStatus& status);

// Whether two messages are equal apart from digits, which are counts and times.
bool same_reason(const std::string& a, const std::string& b);

// How a condition is stored that is false and was never true.
enum class WhenFalse { kLeaveOut, kSayIt };

// Sets condition `wanted.type`; `wanted.since_ms` is ignored.
void set_condition(Conditions& conditions, api::StatusCondition wanted, std::int64_t now_ms,
                   WhenFalse when_false = WhenFalse::kLeaveOut);

// Sets the conditions of a trial that has ended: Complete or Failed becomes true; the other one and
// Waiting become false if they were true.
void end_conditions(Conditions& conditions, bool failed, const std::string& reason,
                    const std::string& message, std::int64_t now_ms);

}  // namespace fettle::core
