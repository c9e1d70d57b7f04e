#include "kube/testing/fake_target.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "kube/objects/json_path.h"
#include "kube/testing/fake_selector.h"

namespace fettle::kube {
namespace {

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      out += text[i];
      continue;
    }
    int code = 0;
    std::from_chars(text.data() + i + 1, text.data() + i + 3, code, 16);
    out += static_cast<char>(code);
    i += 2;
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::string FakeTarget::param(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

std::int64_t FakeTarget::number_param(const std::string& name) const {
  return leading_number(param(name));
}

bool FakeTarget::covers(const Json& object) const {
  if (!key.ns.empty() && key.ns != text_at(object, {"metadata", "namespace"})) return false;
  return matches(object, {param("labelSelector"), param("fieldSelector")});
}

std::optional<FakeTarget> parse_target(std::string_view target) {
  FakeTarget out;
  const std::size_t question = std::min(target.find('?'), target.size());
  for (const std::string_view pair : split(target.substr(question), '&')) {
    const std::string_view plain = pair.substr(pair.front() == '?' ? 1 : 0);
    const std::size_t equals = std::min(plain.find('='), plain.size());
    const std::string_view value = plain.substr(std::min(equals + 1, plain.size()));
    out.query[unescape(plain.substr(0, equals))] = unescape(value);
  }
  const std::vector<std::string_view> path = split(target.substr(0, question), '/');
  std::size_t at = 0;
  const auto next = [&] { return at < path.size() ? unescape(path[at++]) : std::string(); };
  const std::string root = next();
  if (root != "api" && root != "apis") return std::nullopt;
  const std::string group = root == "apis" ? next() : "";
  out.api_version = group.empty() ? next() : group + '/' + next();
  std::string plural = next();
  if (plural == "namespaces" && at + 1 < path.size()) {
    out.key.ns = next();
    plural = next();
  }
  if (plural.empty()) return std::nullopt;
  out.collection = group + '/' + plural;
  out.key.name = next();
  out.subresource = next();
  return out;
}

std::int64_t leading_number(std::string_view text) {
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace fettle::kube
