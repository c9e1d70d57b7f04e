#include "cli/report/page.h"

#include <algorithm>

#include "base/check.h"
#include "cli/common/embedded_file.h"

namespace fettle::cli {
namespace {

// Placeholders in page.html.
constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";

std::string_view part(std::string_view name) {
  const auto& parts = page_parts();
  const auto found = std::ranges::find(parts, name, &EmbeddedFile::name);
  CHECK(found != parts.end(), "the template names a part of the page");
  return found->bytes;
}

}  // namespace

std::string script_json(const Json& data) {
  std::string out;
  for (const char c : data.dump()) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render_page(const std::string& title, const Json& data) {
  std::string_view rest = part("page.html");
  std::string out;
  for (;;) {
    const std::size_t open = rest.find(kOpen);
    if (open == std::string_view::npos) return out.append(rest);
    const std::size_t close = rest.find(kClose, open);
    CHECK(close != std::string_view::npos, "a place in page.html is closed");
    const std::string_view name = rest.substr(open + kOpen.size(), close - open - kOpen.size());
    out += rest.substr(0, open);
    if (name == "title") {
      out += html_text(title);
    } else if (name == "data") {
      out += script_json(data);
    } else {
      out += part(name);
    }
    rest.remove_prefix(close + kClose.size());
  }
}

}  // namespace fettle::cli
