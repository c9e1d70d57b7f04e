// MetricPattern: spec.trial.metrics, compiled: the expressions by which metrics are read from lines
// of text, and the spellings of numbers that programs print.
//
// Immutable after construction: any number of MetricLines share one, on any threads, since its
// cache may take megabytes. Pure functions.
#pragma once

#include <re2/re2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/study/study.h"
#include "base/result.h"

namespace fettle::runtime {

// kInvalid, in words: a regular expression is malformed or lacks a group.
Status check_metrics_filter(const api::MetricsFilter& filter);

// Returns a sentence if the group of the value does not match nan or inf, as a training that
// diverges prints them; "" if it does. Requires a filter that passed check_metrics_filter.
std::string metrics_filter_warning(const api::MetricsFilter& filter);

struct MetricPattern {
  // `filter` must have passed check_metrics_filter.
  explicit MetricPattern(const api::MetricsFilter& filter);

  RE2 re;
  int name = 1;
  int value = 2;
  int step = 0;                // 0 = no such group
  std::optional<RE2> step_re;  // group 1 is the step
  bool matches_nan = true;     // whether the group of the value matches nan and inf
};

std::shared_ptr<const MetricPattern> compile_metrics_filter(const api::MetricsFilter& filter);

// The number that all of `text` spells, in any spelling of C and Python, including nan, -nan and
// inf. A number beyond a double is infinite (1e400) or 0 (1e-400).
std::optional<double> parse_number(std::string_view text);

// Steps are whole and not negative; training frameworks print them as 3 or 3.0.
std::optional<std::int64_t> to_step(double value);

// A line in which each word for a number that is not finite (nan, -nan, inf, null ...) has become
// an ordinary number, so that an expression for digits alone finds it as well.
class FiniteLine {
 public:
  explicit FiniteLine(std::string_view text);
  bool changed() const { return !places_.empty(); }
  const std::string& text() const { return text_; }
  // Whether a part of text() holds a number that replaced such a word.
  bool holds_substitute(std::string_view part) const;

 private:
  std::string text_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // begin and end in text_, ascending
};

}  // namespace fettle::runtime
