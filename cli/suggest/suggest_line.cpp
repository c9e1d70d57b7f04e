#include "cli/suggest/suggest_line.h"

#include <algorithm>
#include <array>
#include <vector>

#include "api/fields/field.h"

namespace fettle::cli {
namespace {

constexpr std::array<std::string_view, 8> kVerbs = {"study", "ask",   "tell",  "report",
                                                    "best",  "first", "known", "hello"};

bool is_envelope(std::string_view member) { return member == "re" || member == "ack"; }

Status check_envelope(const Json& message) {
  const Json* re = message.find("re");
  if (re != nullptr && !re->is_integer()) {
    return invalid("re must be a whole number; found " + api::describe(*re));
  }
  const Json* ack = message.find("ack");
  if (ack != nullptr && !ack->is_boolean()) {
    return invalid("ack must be true or false; found " + api::describe(*ack));
  }
  return success();
}

}  // namespace

Result<Json> parse_line(std::string_view line) {
  auto message = parse_json(line, {.allow_non_finite = true});
  if (message.ok()) return message;
  constexpr std::string_view kInnerLine = "line 1, ";  // always the first of the JSON text
  Error error = message.error();
  if (error.message.starts_with(kInnerLine)) error.message.erase(0, kInnerLine.size());
  return error;
}

std::optional<std::int64_t> number_of(const Json& message) {
  const Json* re = message.is_object() ? message.find("re") : nullptr;
  return re != nullptr && re->is_integer() ? std::optional(re->as_integer()) : std::nullopt;
}

Result<SuggestLine> read_line(const Json& message) {
  const std::string verbs = api::join_names(kVerbs);
  SuggestLine out;
  std::int64_t members = 0;
  if (message.is_object()) {
    for (const auto& [name, content] : message.as_object()) {
      if (is_envelope(name)) continue;
      ++members;
      out.verb = name;
      out.content = content;
    }
  }
  if (members != 1) {
    return invalid("a line is an object with one member: " + verbs +
                   "; re and ack may be beside it");
  }
  FETTLE_TRY(check_envelope(message));
  if (std::ranges::find(kVerbs, out.verb) == kVerbs.end()) {
    return invalid("there is no request " + Json(out.verb).dump() + "; expected " + verbs);
  }
  const Json* ack = message.find("ack");
  out.ack = ack != nullptr && ack->as_boolean();
  return out;
}

}  // namespace fettle::cli
