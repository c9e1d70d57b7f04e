#include "trainer/parallel/variables.h"

#include <charconv>
#include <string_view>

namespace fettle::trainer {

Result<std::int64_t> whole_number(const Variable& variable, const char* name, std::int64_t least,
                                  std::int64_t most, std::optional<std::int64_t> otherwise) {
  const char* const text = variable(name);
  if (text == nullptr && otherwise) return *otherwise;
  const std::string_view found = text == nullptr ? "" : text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  const bool whole = error == std::errc() && end == found.data() + found.size();
  if (whole && value >= least && value <= most) return value;
  return invalid(std::string(name) + " is " +
                 (text == nullptr ? "not set" : "\"" + std::string(found) + "\"") +
                 ", expected a whole number from " + std::to_string(least) + " to " +
                 std::to_string(most));
}

}  // namespace fettle::trainer
