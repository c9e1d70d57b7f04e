// A line of the suggest protocol (suggest.h): one verb, and beside it `re` and `ack`.
// Pure; may be called from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace fettle::cli {

struct SuggestLine {
  std::string verb;
  Json content;
  bool ack = false;  // a reply is wanted even if the verb has none
};

// The JSON of a line. Errors give only the column: the reply names the line of the input.
Result<Json> parse_line(std::string_view line);

// The number that replies to this request repeat; absent: none, or no whole number.
std::optional<std::int64_t> number_of(const Json& message);

// Errors: not one known verb; `re` or `ack` of a wrong type.
Result<SuggestLine> read_line(const Json& message);

}  // namespace fettle::cli
