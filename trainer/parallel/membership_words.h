// Messages between the members of a trial, and their time limits. For membership.cpp and
// membership_epochs.cpp only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"

namespace fettle::trainer {

inline constexpr std::size_t kLongestAnswer = 64 << 10;
// For a frame that the other end sends at once.
inline constexpr auto kGreetingTime = std::chrono::seconds(10);

// Keys of the messages after a failed collective.
inline constexpr const char* kFailedWord = "failed";  // to rank 0
inline constexpr const char* kBreakWord = "break";    // by rank 0
// With kFailedWord: the time was up; the rank that the worker could not reach.
inline constexpr const char* kLateWord = "late";
inline constexpr const char* kUnreachableWord = "unreachable";
// Also in the verdict: workers were in different calls.
inline constexpr const char* kMismatchWord = "mismatch";

inline Error missing(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }

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
