#include "runtime/metric_pattern.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <tuple>

namespace fettle::runtime {
namespace {

RE2::Options pattern_options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  // Output is a stranger's bytes: Latin-1 matches any byte, and agrees with UTF-8 on ASCII
  // patterns.
  options.set_encoding(RE2::Options::EncodingLatin1);
  return options;
}

// The groups of the metric's name and its value. Named groups are used only as a pair, so that
// (?P<step>..) (..)=(..) is not misread.
std::pair<int, int> name_and_value(const RE2& re) {
  const auto& groups = re.NamedCapturingGroups();
  const auto name = groups.find("name");
  const auto value = groups.find("value");
  if (name == groups.end() || value == groups.end()) return {1, 2};
  return {name->second, value->second};
}

// The place behind a character class, [...], that begins at `at`.
std::size_t skip_class(std::string_view regex, std::size_t at) {
  ++at;
  if (at < regex.size() && regex[at] == '^') ++at;
  if (at < regex.size() && regex[at] == ']') ++at;  // a literal ]
  while (at < regex.size() && regex[at] != ']') {
    const bool named = regex.substr(at, 2) == "[:";
    const std::size_t end = named ? regex.find(":]", at) : regex.npos;
    at = end != regex.npos ? end + 2 : at + (regex[at] == '\\' ? 2 : 1);
  }
  return at + 1;
}

// The place behind an escape, or behind all of \Q...\E, that begins at `at`.
std::size_t skip_escape(std::string_view regex, std::size_t at) {
  if (regex.substr(at, 2) != "\\Q") return at + 2;
  const std::size_t end = regex.find("\\E", at);
  return end == regex.npos ? regex.size() : end + 2;
}

// The position of the contents of the group whose parenthesis is at `at`; absent: it captures
// nothing.
std::optional<std::size_t> capture_begin(std::string_view regex, std::size_t at) {
  if (regex.substr(at + 1, 1) != "?") return at + 1;
  const bool named = regex.substr(at + 2, 2) == "P<" || regex.substr(at + 2, 1) == "<";
  return named ? std::optional(regex.find('>', at) + 1) : std::nullopt;
}

// The contents of the capturing group `wanted`; "" if it is not found.
std::string_view group_text(std::string_view regex, int wanted) {
  struct Open {
    int number = 0;  // 0 = it captures nothing
    std::size_t begin = 0;
  };
  std::vector<Open> open;
  int groups = 0;
  for (std::size_t at = 0; at < regex.size();) {
    const char c = regex[at];
    if (c == '[') {
      at = skip_class(regex, at);
      continue;
    }
    if (c == '\\') {
      at = skip_escape(regex, at);
      continue;
    }
    if (c == '(') {
      const auto begin = capture_begin(regex, at);
      open.push_back(begin ? Open{++groups, *begin} : Open{});
    } else if (c == ')' && !open.empty()) {
      if (open.back().number == wanted) {  // numbered by their opening parentheses, as in RE2
        return regex.substr(open.back().begin, at - open.back().begin);
      }
      open.pop_back();
    }
    ++at;
  }
  return "";
}

// The words among nan and inf that the expression `text` does not match; "" = both are matched, or
// `text` means nothing by itself.
std::string unmatched_words(std::string_view text) {
  const RE2 re(std::string(text), pattern_options());
  if (text.empty() || !re.ok()) return "";
  const auto matches = [&](std::initializer_list<const char*> spellings) {
    return std::ranges::any_of(spellings, [&](const char* s) { return RE2::FullMatch(s, re); });
  };
  const bool nan = matches({"nan", "NaN", "NAN"});
  const bool inf = matches({"inf", "Infinity", "INF"});
  if (!nan) return inf ? "nan" : "nan or inf";
  return inf ? "" : "inf";
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](char x, char y) { return std::tolower(static_cast<unsigned char>(x)) == y; });
}

bool is_not_finite(std::string_view word) {
  static constexpr std::array<std::string_view, 4> kWords = {"nan", "inf", "infinity", "null"};
  return std::ranges::any_of(kWords, [&](auto known) { return equal_ignoring_case(word, known); });
}

}  // namespace

Status check_metrics_filter(const api::MetricsFilter& filter) {
  const RE2 re(filter.regex, pattern_options());
  if (!re.ok()) {
    return invalid("spec.trial.metrics.regex: cannot read the regular expression: " + re.error());
  }
  const auto& groups = re.NamedCapturingGroups();
  const bool named = groups.count("name") > 0 && groups.count("value") > 0;
  if (!named && re.NumberOfCapturingGroups() < 2) {
    return invalid(
        "spec.trial.metrics.regex: the regular expression needs two groups, the metric's name and "
        "its value, as in (?P<name>\\w+)=(?P<value>\\S+); it has " +
        std::to_string(re.NumberOfCapturingGroups()));
  }
  if (filter.step.empty()) return success();
  const RE2 step(filter.step, pattern_options());
  if (!step.ok()) {
    return invalid("spec.trial.metrics.step: cannot read the regular expression: " + step.error());
  }
  if (step.NumberOfCapturingGroups() >= 1) return success();
  return invalid(
      "spec.trial.metrics.step: the regular expression needs a group around the number, as in "
      "epoch (\\d+)");
}

std::string metrics_filter_warning(const api::MetricsFilter& filter) {
  if (filter.regex.empty()) return "";
  const RE2 re(filter.regex, pattern_options());
  const std::string_view group = group_text(filter.regex, name_and_value(re).second);
  const std::string unmatched = unmatched_words(group);
  if (unmatched.empty()) return "";
  return "spec.trial.metrics.regex: the group of the value, (" + std::string(group) +
         "), does not match " + unmatched +
         ", which a training that diverges prints; such words are read in the place of a number, "
         "but better say so: ([-+.\\w]+)";
}

MetricPattern::MetricPattern(const api::MetricsFilter& filter)
    : re(filter.regex, pattern_options()) {
  std::tie(name, value) = name_and_value(re);
  const auto& groups = re.NamedCapturingGroups();
  if (const auto found = groups.find("step"); found != groups.end()) step = found->second;
  if (!filter.step.empty()) step_re.emplace(filter.step, pattern_options());
  matches_nan = unmatched_words(group_text(filter.regex, value)).empty();
}

std::shared_ptr<const MetricPattern> compile_metrics_filter(const api::MetricsFilter& filter) {
  return std::make_shared<const MetricPattern>(filter);
}

std::optional<double> parse_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, value);
  if (stopped != end || text.empty()) return std::nullopt;
  if (code == std::errc::result_out_of_range) {
    // 1e999 is a value that is not finite, and 1e-999 is as good as 0. strtod() tells them apart,
    // even without an exponent.
    return std::strtod(std::string(text).c_str(), nullptr);
  }
  if (code != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> to_step(double value) {
  constexpr double kMaxStep = 9007199254740992.0;  // 2^53
  if (!(value >= 0 && value <= kMaxStep) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

FiniteLine::FiniteLine(std::string_view text) {
  constexpr std::string_view kNumber = "0.000000";
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == at || !is_not_finite(text.substr(at, end - at))) {
      end = std::max(end, at + 1);
      text_ += text.substr(at, end - at);
    } else {
      places_.emplace_back(text_.size(), text_.size() + kNumber.size());
      text_ += kNumber;
    }
    at = end;
  }
}

bool FiniteLine::holds_substitute(std::string_view part) const {
  if (places_.empty() || part.data() == nullptr) return false;
  const auto begin = static_cast<std::size_t>(part.data() - text_.data());
  return std::ranges::any_of(places_, [&](const auto& place) {
    return begin < place.second && place.first < begin + part.size();
  });
}

}  // namespace fettle::runtime
