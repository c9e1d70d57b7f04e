#include "cli/suggest/suggest.h"

#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "cli/common/exit_code.h"
#include "cli/suggest/suggest_line.h"
#include "cli/suggest/suggest_session.h"

namespace fettle::cli {
namespace {

constexpr std::streamsize kMaxLineBytes = 16 << 20;

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

// The reply to a line, and the number of the request that it repeats.
struct Reply {
  Result<std::string> members = std::string();  // "" = none
  std::optional<std::int64_t> re;
};

Reply reply_to(SuggestSession& session, std::string_view text) {
  const auto message = parse_line(text);
  if (!message.ok()) return {message.error(), std::nullopt};
  const auto line = read_line(*message);
  if (!line.ok()) return {line.error(), number_of(*message)};
  return {session.handle(*line), number_of(*message)};
}

void print(const Reply& reply, std::int64_t line, std::ostream& out) {
  std::string members;
  if (reply.members.ok()) {
    members = *reply.members;
    if (members.empty()) return;
  } else {
    members = "\"error\":" + Json(reply.members.error().message).dump() +
              ",\"line\":" + std::to_string(line);
  }
  if (reply.re) members += ",\"re\":" + std::to_string(*reply.re);
  out << '{' << members << "}\n" << std::flush;
}

}  // namespace

int run_suggest(std::istream& in, std::ostream& out, std::optional<SuggestPlace> place) {
  SuggestSession session(std::move(place));
  // Not cleared: short lines touch only the part that they need.
  const auto buffer = std::make_unique_for_overwrite<char[]>(kMaxLineBytes + 1);
  for (std::int64_t number = 1; out; ++number) {
    in.getline(buffer.get(), kMaxLineBytes + 1);  // and a NUL
    const std::streamsize read = in.gcount();
    if (in.eof() && read == 0) return kExitSucceeded;
    if (in.bad()) {  // a directory, for example: no line will come
      std::cerr << "fettle: the input cannot be read\n";
      return kExitEnvironment;
    }
    Reply reply;
    if (in.fail() && !in.eof()) {
      in.clear();
      in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
      reply.members =
          invalid("the line is longer than " + std::to_string(kMaxLineBytes) + " bytes");
    } else {
      const std::streamsize length = in.eof() ? read : read - 1;  // without the newline
      const std::string_view line(buffer.get(), static_cast<std::size_t>(length));
      if (!is_blank(line)) reply = reply_to(session, line);
    }
    print(reply, number, out);
  }
  return kExitEnvironment;
}

}  // namespace fettle::cli
