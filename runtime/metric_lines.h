// MetricLines: from what a trial prints to its Report.
//
// Takes the bytes of standard output in any pieces. Without a regular expression a line that is a
// JSON object is read by the worker contract: every numeric, NaN or Infinity member but `step` is a
// metric, `checkpoint` and `checkpoint_step` name the newest durable checkpoint, `"final": true`
// says that untilStep was reached. With one, every match on a line is a metric: groups `name` and
// `value` (or 1 and 2), and `step` if there is such a group or a name "step". All else is only log.
// A JSON line without a step counts as the step after the last one; for a regular expression a line
// does so when it repeats a metric of the current step.
// Bounds: a line counts up to kMaxLineBytes, a report holds kMaxMetrics metrics. Names that are not
// UTF-8 or hold a NUL are left out, so that api::read_report accepts every report. Never fails: the
// bytes are a stranger's. Not synchronised; no IO; the time comes in from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/report.h"
#include "api/study.h"
#include "api/trial.h"
#include "base/result.h"

namespace fettle::runtime {

inline constexpr std::size_t kMaxLineBytes = 64 << 10;
inline constexpr std::size_t kMaxMetrics = api::kMaxReportMetrics;
inline constexpr std::size_t kMaxMetricName = api::kLongestMetricName;
inline constexpr std::size_t kMaxCheckpointName = api::kLongestCheckpointName;

struct MetricLinesOptions {
  std::string regex;                            // RE2 syntax; "" = JSON lines
  std::vector<std::int64_t> rungs = {};         // ascending
  std::vector<api::Objective> objectives = {};  // whose best and newest values the curve keeps
};

// kInvalid, in words: the regular expression cannot be read, or has not the groups it needs.
Status check_metrics_regex(const std::string& regex);

// A compiled regular expression, which many MetricLines may share, on any threads: what it caches
// may be megabytes. It must have passed check_metrics_regex.
struct MetricPattern;
std::shared_ptr<const MetricPattern> compile_metrics_regex(const std::string& regex);

class MetricLines {
 public:
  // `pattern`: of options.regex; null = it is compiled here.
  explicit MetricLines(const MetricLinesOptions& options,
                       std::shared_ptr<const MetricPattern> pattern = nullptr);
  ~MetricLines();
  MetricLines(const MetricLines&) = delete;
  MetricLines& operator=(const MetricLines&) = delete;

  void feed(std::string_view bytes, std::int64_t now_ms);
  // The output has ended: a last line without a newline counts too.
  void finish(std::int64_t now_ms);

  // True once there was a metric or a checkpoint.
  bool has_report() const { return lines_ > 0; }
  const api::Report& report() const { return report_; }
  // Lines that were understood; grows when the report changes.
  std::int64_t lines() const { return lines_; }
  // True since the last call if a rung was reached or the final result came: do not hold it back.
  bool take_urgent();

 private:
  struct Found;

  void line(std::string_view text);
  void json_line(std::string_view text);
  void regex_line(std::string_view text);
  void add(Found found, bool step_may_stay);

  std::shared_ptr<const MetricPattern> pattern_;  // null: JSON lines
  api::CurveNeeds needs_;
  api::Report report_;
  std::string partial_;    // the beginning of a line, at most kMaxLineBytes
  bool skipping_ = false;  // the line is too long: ignore it to its end
  bool urgent_ = false;
  std::int64_t lines_ = 0;
  std::int64_t now_ms_ = 0;
  std::vector<std::string> at_step_;  // metrics seen at the current step
};

}  // namespace fettle::runtime
