#include "runtime/metric_lines.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "api/fields/field.h"
#include "base/json.h"
#include "base/utf8.h"
#include "runtime/line_advice.h"
#include "search/study_problem.h"

namespace fettle::runtime {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Whether a Report can carry the text: see read_value in api/fields/field_reader.cpp.
bool is_text(std::string_view text, std::size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && text.find('\0') == text.npos && is_utf8(text);
}

}  // namespace

// The contents of one line.
struct MetricLines::Found {
  std::optional<std::int64_t> step;
  std::map<std::string, double> metrics;
  std::string checkpoint;
  std::int64_t checkpoint_step = 0;
  bool final_result = false;
  std::string unread_step;  // an invalid step, as it was written

  void set_step(std::optional<std::int64_t> read, std::string_view text) {
    step = read;
    if (!read) unread_step = text;
  }

  // `wanted`: the metric has room, however many others there are.
  void metric(std::string_view name, double value, bool wanted) {
    if (!is_text(name, kMaxMetricName)) return;
    const auto known = metrics.find(std::string(name));
    if (known != metrics.end()) {
      known->second = value;
    } else if (wanted || metrics.size() < kMaxMetrics) {
      metrics.emplace(name, value);
    }
  }
};

MetricLinesOptions metric_options(const api::Study& study) {
  MetricLinesOptions options;
  options.filter = study.spec.trial.metrics.value_or(api::MetricsFilter());
  options.rungs = search::rung_steps(study);
  options.objectives = study.spec.objectives;
  for (const api::Constraint& constraint : study.spec.constraints) {
    options.constraints.push_back(constraint.metric);
  }
  return options;
}

MetricLines::MetricLines(const MetricLinesOptions& options,
                         std::shared_ptr<const MetricPattern> pattern)
    : pattern_(std::move(pattern)),
      first_step_(options.filter.first_step),
      needs_{options.rungs, options.objectives},
      wanted_(options.constraints.begin(), options.constraints.end()) {
  for (const api::Objective& objective : options.objectives) wanted_.insert(objective.metric);
  if (pattern_ == nullptr && !options.filter.regex.empty()) {
    pattern_ = compile_metrics_filter(options.filter);
  }
}

MetricLines::~MetricLines() = default;

void MetricLines::feed(std::string_view bytes, std::int64_t now_ms) {
  now_ms_ = now_ms;
  near_miss_.count(std::ssize(bytes));
  output_.feed(bytes, [this](std::string_view text, bool cut) { line(text, cut); });
}

void MetricLines::finish(std::int64_t now_ms) {
  now_ms_ = now_ms;
  output_.finish([this](std::string_view text, bool cut) { line(text, cut); });
}

bool MetricLines::take_urgent() { return std::exchange(urgent_, false); }

void MetricLines::line(std::string_view text, bool cut) {
  near_miss_.count_line();
  ++line_;
  if (pattern_) return regex_line(text);
  const std::string_view object = trimmed(text);
  const bool formed = object.size() >= 2 && object.front() == '{' && object.back() == '}';
  if (formed && !cut) return json_line(object);
  if (lines_ > 0 || object.empty()) return;  // with a report, near misses do not matter
  cut ? miss_cut(object) : miss_json(object);
}

void MetricLines::json_line(std::string_view text) {
  JsonParseOptions options;
  options.allow_non_finite = true;
  const Result<Json> parsed = parse_json(text, options);
  if (!parsed.ok() || !parsed->is_object()) {
    if (parsed.ok()) return;
    for (const std::string& metric : wanted_) {
      if (text.find('"' + metric + '"') != text.npos) note_unread(metric);
    }
    if (lines_ > 0 || !names_a_wanted_metric(text)) return;
    return near_miss_.see(NearMiss::Rank::kBroken, text,
                          "is no JSON: " + parsed.error().message + advice_for(text, wanted_));
  }
  Found found;
  for (const auto& [name, value] : parsed->as_object()) json_member(name, value, text, found);
  const bool asked_for =
      wanted_.empty() || std::ranges::any_of(found.metrics, [&](const auto& metric) {
        return is_wanted(metric.first);
      });
  if (asked_for || !found.checkpoint.empty() || found.final_result) {
    return add(std::move(found), /*step_may_stay=*/false);
  }
  if (found.metrics.empty() || lines_ > 0) return;  // a plain log line, or a report exists
  // wanted_ holds a metric: if it were empty, every metric would be asked for.
  miss_name(text, found);
}

// Notes a line whose metrics the Study does not ask for.
void MetricLines::miss_name(std::string_view text, const Found& found) {
  for (const auto& [name, value] : found.metrics) {
    const std::string wanted = same_but_for_case(name, wanted_);
    if (wanted.empty()) continue;
    return near_miss_.see(NearMiss::Rank::kOther, text,
                          "holds " + name + ", and the Study asks for " + wanted +
                              ": case counts; write metric: " + name + " in the Study");
  }
  near_miss_.see(NearMiss::Rank::kOther, text,
                 "holds " + found.metrics.begin()->first + ", but not " + *wanted_.begin());
}

void MetricLines::json_member(const std::string& name, const Json& value, std::string_view text,
                              Found& found) {
  const bool wanted = is_wanted(name);
  if (name == "final") {
    found.final_result = value.is_boolean() && value.as_boolean();
  } else if (name == "checkpoint") {
    if (value.is_string() && is_text(value.as_string(), kMaxCheckpointName)) {
      found.checkpoint = value.as_string();
    }
  } else if (name == "step") {
    found.set_step(value.is_number() ? to_step(value.as_double()) : std::nullopt, value.dump());
  } else if (value.is_null() && wanted) {
    // JavaScript, pandas and others write null for NaN.
    found.metric(name, std::numeric_limits<double>::quiet_NaN(), wanted);
  } else if (!value.is_number()) {
    if (!wanted) return;
    note_unread(name);
    if (lines_ > 0) return;
    near_miss_.see(NearMiss::Rank::kNoNumber, text,
                   "holds " + name + ", but its value is no number");
  } else if (name == "checkpoint_step") {
    found.checkpoint_step = to_step(value.as_double()).value_or(0);
  } else {
    found.metric(name, value.as_double(), wanted);
  }
}

// Notes a line that does not begin like a JSON object.
void MetricLines::miss_json(std::string_view text) {
  if (!names_a_wanted_metric(text)) return;
  const std::size_t brace = text.find('{');
  if (brace != text.npos && brace > 0 && text.back() == '}') {
    return near_miss_.see(NearMiss::Rank::kInside, text,
                          "has text before its {; a JSON line holds nothing else");
  }
  const std::string advice = advice_for(text, wanted_);
  near_miss_.see(
      NearMiss::Rank::kNamed, text,
      "is no JSON object" +
          (advice.empty() ? "; spec.trial.metrics.regex says how such a line is read" : advice));
}

// Notes the end of a line that is too long.
void MetricLines::miss_cut(std::string_view text) {
  const bool named = names_a_wanted_metric(text);
  if (!named && text.back() != '}') return;
  near_miss_.see(named ? NearMiss::Rank::kBroken : NearMiss::Rank::kNamed, text,
                 "is the end of a line of more than " + std::to_string(kMaxLineBytes) +
                     " bytes, which is too long; print fewer metrics, or several lines");
}

bool MetricLines::names_a_wanted_metric(std::string_view text) const {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  const auto alike = [&](char a, char b) { return lower(a) == lower(b); };
  return std::ranges::any_of(wanted_, [&](const std::string& metric) {
    return !std::ranges::search(text, metric, alike).empty();
  });
}

std::string MetricLines::expected_line() const {
  return pattern_ ? "matched by spec.trial.metrics.regex" : "a JSON object with a metric";
}

// Reads the step that filter.step finds and counts it from 1, whatever number the program gives its
// first step. A fraction is rounded down: 1.5 of steps counted from 0 is within the second step.
void MetricLines::read_step(std::string_view text) {
  re2::StringPiece number;
  const re2::StringPiece input(text.data(), text.size());
  if (!RE2::PartialMatch(input, *pattern_->step_re, &number)) return;
  const auto value = parse_number({number.data(), number.size()});
  if (!value) return;
  if (const auto step = to_step(std::floor(*value))) {
    read_step_ = std::max<std::int64_t>(0, *step + 1 - first_step_);
  }
}

void MetricLines::regex_line(std::string_view original) {
  if (pattern_->step_re) read_step(original);
  std::optional<FiniteLine> finite;
  // An expression for digits alone is matched against a line with digits in place of nan.
  if (!pattern_->matches_nan) finite.emplace(original);
  const std::string_view text = finite ? std::string_view(finite->text()) : original;
  const re2::StringPiece input(text.data(), text.size());
  // Group 0 is the match itself. RE2 copies no more groups than there are places.
  const int last = std::max({pattern_->name, pattern_->value, pattern_->step});
  std::vector<re2::StringPiece> group(static_cast<std::size_t>(last) + 1);
  const auto view = [&](int i) {  // 0 = the pattern has no such group
    const re2::StringPiece& one = group[static_cast<std::size_t>(i)];
    return i > 0 ? std::string_view(one.data(), one.size()) : std::string_view();
  };
  Found found;
  bool matched_any = false;
  std::size_t at = 0;
  while (at <= text.size() &&
         pattern_->re.Match(input, at, text.size(), RE2::UNANCHORED, group.data(), last + 1)) {
    const auto matched = static_cast<std::size_t>(group[0].data() - input.data());
    at = matched + std::max<std::size_t>(group[0].size(), 1);  // also past an empty match
    // Absent if it is no whole number: then add() counts the line.
    if (const auto step = parse_number(view(pattern_->step))) found.step = to_step(*step);
    const std::string_view name = trimmed(view(pattern_->name));
    matched_any = matched_any || !name.empty();
    const bool substitute = finite && finite->holds_substitute(view(pattern_->value));
    regex_match(name, substitute ? "nan" : view(pattern_->value), original, found);
  }
  if (!matched_any && lines_ == 0 && names_a_wanted_metric(original)) {
    near_miss_.see(NearMiss::Rank::kNamed, original,
                   "is not matched by spec.trial.metrics.regex" + advice_for(original, wanted_));
  }
  add(std::move(found), /*step_may_stay=*/true);
}

void MetricLines::regex_match(std::string_view name, std::string_view text, std::string_view line,
                              Found& found) {
  const bool wanted = is_wanted(std::string(name));
  const bool is_null = wanted && trimmed(text) == "null";
  const auto value = is_null ? std::numeric_limits<double>::quiet_NaN() : parse_number(text);
  if (!value) {
    if (wanted) note_unread(std::string(name));
    if (lines_ > 0 || name.empty()) return;
    return near_miss_.see(NearMiss::Rank::kNoNumber, line,
                          "is matched, but what it says for " +
                              api::clean_text(name, kMaxMetricName) + " is no number");
  }
  if (name == "step") {
    found.set_step(to_step(*value), text);
  } else {
    found.metric(name, *value, wanted);
  }
}

// Counts a line once.
void MetricLines::note_unread(const std::string& metric) {
  Unread& unread = unread_[metric];
  if (unread.line != line_) ++unread.lines;
  unread.line = line_;
}

void MetricLines::add(Found found, bool step_may_stay) {
  if (comes_after_the_end(found)) {
    printed_on_ = true;
    found.step = report_.step;  // a step at which it replaces nothing (api/trial/report.h)
  }
  if (found.metrics.empty() && found.checkpoint.empty() && !found.final_result) return;
  keep_room_for(found);
  has_counted_ = has_counted_ || (!found.step && !found.metrics.empty());
  if (unread_step_.empty()) unread_step_ = std::move(found.unread_step);
  api::ReportLine line;
  line.step = step_of(found, step_may_stay);
  line.checkpoint = std::move(found.checkpoint);
  line.checkpoint_step = found.checkpoint_step;
  line.final_result = found.final_result;
  if (line.step != report_.step) at_step_.clear();
  for (const auto& [name, value] : found.metrics) {
    if (is_wanted(name) || at_step_.size() < kMaxMetrics) at_step_.insert(name);
    has_result_ = has_result_ || wanted_.empty() || is_wanted(name);
    unread_.erase(name);  // it counts lines since the last value
  }
  line.metrics = std::move(found.metrics);
  api::add_line(report_, std::move(line), needs_, now_ms_);
  ++lines_;
  furthest_step_ = std::max(furthest_step_, report_.step);
  const bool at_rung = std::ranges::binary_search(needs_.rungs, report_.step);
  urgent_ = urgent_ || found.final_result || at_rung;
}

// A result that was called final is not replaced by a later line of the same step.
bool MetricLines::comes_after_the_end(const Found& found) const {
  if (!report_.final_result || found.final_result || found.metrics.empty()) return false;
  return step_of(found, /*step_may_stay=*/true) <= report_.step;
}

std::string MetricLines::remarks() const {
  std::string text;
  const auto add = [&](const std::string& sentence) {
    text += (text.empty() ? "" : "; ") + sentence;
  };
  for (const auto& [metric, unread] : unread_) {
    const std::string lines = unread.lines == 1 ? "line" : std::to_string(unread.lines) + " lines";
    add("the last " + lines + " with " + metric + " held no number");
  }
  if (!unread_step_.empty()) {
    add("step " + api::clean_text(unread_step_, kMaxMetricName) +
        " is no whole number from 0 on, so lines were counted instead");
  }
  if (furthest_step_ > report_.step) {
    add("it reported step " + std::to_string(furthest_step_) + ", then went back to " +
        std::to_string(report_.step) + ": what was printed last counts");
  }
  if (printed_on_) add("it printed metrics after its final result, which replace nothing");
  return text;
}

std::int64_t MetricLines::step_of(const Found& found, bool step_may_stay) const {
  if (found.step) return *found.step;
  if (found.metrics.empty()) return report_.step;  // a checkpoint or the end, of the current step
  if (pattern_ && pattern_->step_re) return read_step_;
  const bool repeats = std::ranges::any_of(
      found.metrics, [&](const auto& m) { return at_step_.count(m.first) > 0; });
  // Step 0: no line was counted yet.
  return step_may_stay && report_.step > 0 && !repeats ? report_.step : report_.step + 1;
}

// A line holds kMaxMetrics, and so does a report. Metrics that the Study asks for have a place in
// both.
void MetricLines::keep_room_for(Found& found) {
  const auto drop_one = [&](std::map<std::string, double>& metrics) {
    const auto other =
        std::ranges::find_if(metrics, [&](const auto& m) { return !is_wanted(m.first); });
    if (other != metrics.end()) metrics.erase(other);
  };
  for (std::size_t i = found.metrics.size(); i > kMaxMetrics; --i) drop_one(found.metrics);
  for (const auto& [name, value] : found.metrics) {
    if (!is_wanted(name) || report_.metrics.count(name) > 0) continue;
    if (report_.metrics.size() >= kMaxMetrics) drop_one(report_.metrics);
    // Immediately: add_line() gives the free places to the first names of the line, wanted or not.
    if (report_.metrics.size() < kMaxMetrics) report_.metrics.emplace(name, value);
  }
}

}  // namespace fettle::runtime
