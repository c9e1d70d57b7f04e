#include "runtime/local/run/expand.h"

#include <cstddef>

namespace fettle::local {

std::string expand(std::string_view text, const std::map<std::string, std::string>& variables) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t dollar = text.find('$', at);
    out += text.substr(at, dollar == std::string_view::npos ? dollar : dollar - at);
    if (dollar == std::string_view::npos) break;
    const char next = dollar + 1 < text.size() ? text[dollar + 1] : '\0';
    const std::size_t close = next == '(' ? text.find(')', dollar) : std::string_view::npos;
    if (close != std::string_view::npos) {
      const std::string_view reference = text.substr(dollar, close + 1 - dollar);
      const auto found = variables.find(std::string(reference.substr(2, reference.size() - 3)));
      out += found == variables.end() ? reference : std::string_view(found->second);
      at = close + 1;
    } else {
      out += '$';  // "$$" is one "$"; a "$" before anything else stays
      at = dollar + (next == '$' ? 2 : 1);
    }
  }
  return out;
}

}  // namespace fettle::local
