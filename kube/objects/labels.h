// Reads labels and annotations. Pure functions; usable from any thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <string>

namespace fettle::kube {

// The rank of a pod of an Indexed Job.
inline constexpr const char* kRankLabel = "batch.kubernetes.io/job-completion-index";

using Labels = std::map<std::string, std::string>;

// "" if it is absent.
inline std::string text_in(const Labels& labels, const char* name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

// 0 if it is absent or does not begin with a number.
inline std::int64_t number_in(const Labels& labels, const char* name) {
  const std::string text = text_in(labels, name);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace fettle::kube
