#include "runtime/line_advice.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/metric_pattern.h"

namespace fettle::runtime {

namespace {

// The forms of docs/your-program.md, narrow forms first.
constexpr std::array<const char*, 6> kForms = {R"((\w+)=([-+.\w]+))",
                                               R"((\w+): ([-+.\w]+))",
                                               R"(([\w-]+):([-+.\w]+))",
                                               R"('(\w+)': '?([-+.\w]+))",
                                               R"(([\w./@-]+) *[=:] *([-+.\w]+))",
                                               R"((\w+) +([-+.\w]+))"};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

// The name under which the expression reads a metric of `wanted` on the line; "" if it reads none.
std::string name_read_by(const char* form, std::string_view line,
                         const std::set<std::string>& wanted) {
  const RE2 re(form);
  re2::StringPiece rest(line.data(), line.size());
  std::string name;
  std::string value;
  while (RE2::FindAndConsume(&rest, re, &name, &value)) {
    const bool is_wanted = wanted.count(name) > 0 || !same_but_for_case(name, wanted).empty();
    if (is_wanted && parse_number(value)) return name;
  }
  return "";
}

// The text in single quotes, as YAML writes them.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string same_but_for_case(std::string_view name, const std::set<std::string>& names) {
  const auto found = std::ranges::find_if(
      names, [&](const std::string& one) { return one != name && equal_ignoring_case(one, name); });
  return found == names.end() ? "" : *found;
}

std::string advice_for(std::string_view line, const std::set<std::string>& wanted) {
  for (const char* const form : kForms) {
    const std::string name = name_read_by(form, line, wanted);
    if (name.empty()) continue;
    std::string advice = "; spec.trial.metrics: {regex: " + quoted(form) + "} reads it";
    if (wanted.count(name) == 0) {  // it differs in case from a metric that is wanted
      advice += ", with metric: " + name + " in place of " + same_but_for_case(name, wanted);
    }
    return advice;
  }
  return "";
}

}  // namespace fettle::runtime
