// Messages between the members of a trial, and their time limits. For the sources of membership.h
// only.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "trainer/parallel/connection.h"

namespace fettle::trainer {

inline constexpr std::size_t kLongestAnswer = 64 << 10;
// For a frame that the other end sends at once.
inline constexpr auto kGreetingTime = std::chrono::seconds(10);
inline constexpr std::size_t kLongestGreeting = 4 << 10;
// Interval at which a worker that waits for others checks whether it should stop.
inline constexpr auto kGlance = std::chrono::milliseconds(200);

// Workers whose collective times out report it at about the same time.
inline constexpr auto kLateGrace = std::chrono::seconds(5);

// Keys of the messages after a failed collective.
inline constexpr const char* kFailedWord = "failed";  // to rank 0
inline constexpr const char* kBreakWord = "break";    // by rank 0
// With kFailedWord: the time was up; the rank that the worker could not reach.
inline constexpr const char* kLateWord = "late";
inline constexpr const char* kUnreachableWord = "unreachable";
// Also in the verdict: workers were in different calls.
inline constexpr const char* kMismatchWord = "mismatch";

inline Error missing(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }

inline Error stopped() { return missing("it was to stop before all workers were there"); }

// Waits until one of them is readable, or the deadline.
inline void wait_for_any(std::vector<pollfd> polled, Deadline deadline) {
  ::poll(polled.data(), polled.size(), milliseconds_until(deadline));
}

// "1.5 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  return Json(static_cast<double>(time.count()) / 1000).dump() + " s";
}

// Messages are not trusted: "", -1 and {} stand for members of an unexpected type.
inline std::string text_of(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_string() ? member->as_string() : "";
}

inline std::int64_t number_of(const Json& object, std::string_view key) {
  const Json* const member = object.find(key);
  return member != nullptr && member->is_integer() ? member->as_integer() : -1;
}

inline Json object_in(const std::string& frame) {
  Result<Json> parsed = parse_json(frame);
  return parsed.ok() && parsed->is_object() ? *std::move(parsed) : Json::object();
}

}  // namespace fettle::trainer
