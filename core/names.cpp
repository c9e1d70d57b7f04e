// Deterministic names: a replayed or doubled write collides instead of doubling work.
#include "core/names.h"

#include <charconv>
#include <string_view>

namespace fettle::core {

std::string trial_name(const std::string& study, std::int64_t index) {
  return study + "-" + std::to_string(index);
}

std::optional<std::int64_t> trial_index(const std::string& study, const std::string& trial) {
  const std::string_view prefix = study;
  if (trial.size() <= prefix.size() + 1 || !trial.starts_with(prefix)) return std::nullopt;
  std::int64_t index = 0;
  const char* end = trial.data() + trial.size();
  const auto read = std::from_chars(trial.data() + prefix.size() + 1, end, index);
  const bool is_number = read.ec == std::errc() && read.ptr == end;
  // Neither "digits13" nor "digits-03" is a name of a trial of "digits".
  const bool is_name = is_number && index >= 0 && trial == trial_name(study, index);
  return is_name ? std::optional(index) : std::nullopt;
}

std::string run_name(const std::string& trial, std::int64_t run) {
  return trial + "-r" + std::to_string(run);
}

}  // namespace fettle::core
