#include "runtime/metric_lines.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"

namespace fettle::runtime {
namespace {

RE2::Options pattern_options() {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(8 << 20);
  // Output is a stranger's bytes: Latin-1 matches any, and agrees with UTF-8 on ASCII patterns.
  options.set_encoding(RE2::Options::EncodingLatin1);
  return options;
}

// The number in all of `text`, in any spelling that C and Python print, nan and inf included.
std::optional<double> parse_number(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, value);
  if (stopped != end || text.empty()) return std::nullopt;
  if (code == std::errc::result_out_of_range) {
    // 1e999: there is a value, and it is not finite. 1e-999 is as good as 0.
    const bool tiny = text.find("e-") != text.npos || text.find("E-") != text.npos;
    if (tiny) return 0.0;
    return text.front() == '-' ? -std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::infinity();
  }
  if (code != std::errc()) return std::nullopt;
  return value;
}

// Steps are whole and not negative; training frameworks print them as 3 or 3.0.
std::optional<std::int64_t> to_step(double value) {
  constexpr double kMaxStep = 9007199254740992.0;  // 2^53
  if (!(value >= 0 && value <= kMaxStep) || value != std::floor(value)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// What a Report can carry as text: see read_value in api/field_reader.cpp.
bool is_text(std::string_view text, std::size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && text.find('\0') == text.npos && is_utf8(text);
}

}  // namespace

// What one line said.
struct MetricLines::Found {
  std::optional<std::int64_t> step;
  std::vector<std::pair<std::string, double>> metrics;
  std::string checkpoint;
  std::int64_t checkpoint_step = 0;
  bool final_result = false;

  void metric(std::string_view name, double value) {
    if (metrics.size() >= kMaxMetrics || !is_text(name, kMaxMetricName)) return;
    metrics.emplace_back(name, value);
  }
};

struct MetricPattern {
  explicit MetricPattern(const std::string& regex) : re(regex, pattern_options()) {
    const auto& groups = re.NamedCapturingGroups();
    const auto group = [&](const char* wanted, int otherwise) {
      const auto found = groups.find(wanted);
      return found == groups.end() ? otherwise : found->second;
    };
    // Named groups are used only as a pair, so that (?P<step>..) (..)=(..) is not misread.
    const bool named = groups.count("name") > 0 && groups.count("value") > 0;
    name = named ? group("name", 1) : 1;
    value = named ? group("value", 2) : 2;
    step = group("step", 0);
  }

  RE2 re;
  int name = 1;
  int value = 2;
  int step = 0;  // 0 = no such group
};

Status check_metrics_regex(const std::string& regex) {
  const RE2 re(regex, pattern_options());
  if (!re.ok()) return invalid("cannot read the regular expression: " + re.error());
  const auto& groups = re.NamedCapturingGroups();
  const bool named = groups.count("name") > 0 && groups.count("value") > 0;
  if (named || re.NumberOfCapturingGroups() >= 2) return success();
  return invalid(
      "the regular expression needs two groups, the metric's name and its value, as in "
      "(?P<name>\\w+)=(?P<value>\\S+); it has " +
      std::to_string(re.NumberOfCapturingGroups()));
}

std::shared_ptr<const MetricPattern> compile_metrics_regex(const std::string& regex) {
  return std::make_shared<const MetricPattern>(regex);
}

MetricLines::MetricLines(const MetricLinesOptions& options,
                         std::shared_ptr<const MetricPattern> pattern)
    : pattern_(std::move(pattern)), needs_{options.rungs, options.objectives} {
  if (pattern_ == nullptr && !options.regex.empty())
    pattern_ = compile_metrics_regex(options.regex);
}

MetricLines::~MetricLines() = default;

void MetricLines::feed(std::string_view bytes, std::int64_t now_ms) {
  now_ms_ = now_ms;
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    const bool whole = newline != std::string_view::npos;
    if (!skipping_ && partial_.size() + piece.size() > kMaxLineBytes) {
      skipping_ = true;
      partial_.clear();
    }
    if (!skipping_ && whole && partial_.empty()) {
      line(piece);  // the usual case, without a copy
    } else if (!skipping_) {
      partial_ += piece;
      if (whole) line(partial_);
    }
    if (!whole) return;
    partial_.clear();
    skipping_ = false;
    bytes.remove_prefix(newline + 1);
  }
}

void MetricLines::finish(std::int64_t now_ms) {
  now_ms_ = now_ms;
  if (!partial_.empty()) line(partial_);
  partial_.clear();
}

bool MetricLines::take_urgent() { return std::exchange(urgent_, false); }

void MetricLines::line(std::string_view text) {
  if (pattern_) return regex_line(text);
  const std::string_view object = trimmed(text);
  if (object.size() < 2 || object.front() != '{' || object.back() != '}') return;
  json_line(object);
}

void MetricLines::json_line(std::string_view text) {
  JsonParseOptions options;
  options.allow_non_finite = true;
  const Result<Json> parsed = parse_json(text, options);
  if (!parsed.ok() || !parsed->is_object()) return;
  Found found;
  for (const auto& [name, value] : parsed->as_object()) {
    if (name == "final") {
      found.final_result = value.is_boolean() && value.as_boolean();
    } else if (name == "checkpoint") {
      if (value.is_string() && is_text(value.as_string(), kMaxCheckpointName)) {
        found.checkpoint = value.as_string();
      }
    } else if (!value.is_number()) {
      continue;
    } else if (name == "step") {
      found.step = to_step(value.as_double());
    } else if (name == "checkpoint_step") {
      found.checkpoint_step = to_step(value.as_double()).value_or(0);
    } else {
      found.metric(name, value.as_double());
    }
  }
  add(std::move(found), false);
}

void MetricLines::regex_line(std::string_view text) {
  constexpr int kMaxGroups = 16;
  const int groups = std::min(pattern_->re.NumberOfCapturingGroups() + 1, kMaxGroups);
  const re2::StringPiece input(text.data(), text.size());
  re2::StringPiece group[kMaxGroups];
  const auto view = [&](int i) {
    return i > 0 && i < groups ? std::string_view(group[i].data(), group[i].size())
                               : std::string_view();
  };
  Found found;
  std::size_t at = 0;
  while (at <= text.size() &&
         pattern_->re.Match(input, at, text.size(), RE2::UNANCHORED, group, groups)) {
    const auto matched = static_cast<std::size_t>(group[0].data() - input.data());
    at = matched + std::max<std::size_t>(group[0].size(), 1);
    if (const auto step = parse_number(view(pattern_->step))) found.step = to_step(*step);
    const auto value = parse_number(view(pattern_->value));
    if (!value) continue;
    const std::string_view name = trimmed(view(pattern_->name));
    if (name == "step") {
      found.step = to_step(*value);
    } else {
      found.metric(name, *value);
    }
  }
  add(std::move(found), true);
}

void MetricLines::add(Found found, bool step_may_stay) {
  if (found.metrics.empty() && found.checkpoint.empty() && !found.final_result) return;
  api::ReportLine line{
      report_.step, {}, std::move(found.checkpoint), found.checkpoint_step, found.final_result};
  if (found.step) {
    line.step = *found.step;
  } else if (!found.metrics.empty()) {
    const auto seen = [&](const auto& metric) {
      return std::find(at_step_.begin(), at_step_.end(), metric.first) != at_step_.end();
    };
    const bool stays = step_may_stay && report_.step > 0 &&
                       std::none_of(found.metrics.begin(), found.metrics.end(), seen);
    if (!stays) ++line.step;
  }
  if (line.step != report_.step) at_step_.clear();
  for (const auto& [name, value] : found.metrics) {
    const bool known = std::find(at_step_.begin(), at_step_.end(), name) != at_step_.end();
    if (!known && at_step_.size() < kMaxMetrics) at_step_.push_back(name);
    line.metrics[name] = value;
  }
  api::add_line(report_, std::move(line), needs_, now_ms_);
  ++lines_;
  const bool at_rung = std::binary_search(needs_.rungs.begin(), needs_.rungs.end(), report_.step);
  urgent_ = urgent_ || found.final_result || at_rung;
}

}  // namespace fettle::runtime
