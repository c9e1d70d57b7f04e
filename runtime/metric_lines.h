// MetricLines: turns the output of a trial into its Report.
//
// Takes the bytes of an output in any pieces and reads the lines that a terminal would show
// (output_lines.h). Without a regular expression a line that is a JSON object is read by the worker
// contract: every number but `step` is a metric, `checkpoint` and `checkpoint_step` name the newest
// durable checkpoint, `"final": true` says that untilStep was reached. A JSON line with none of
// these and no metric that the Study asks for is plain log output. With a regular expression every
// match on a line is a metric: groups `name` and `value` (or 1 and 2), and `step` if there is such
// a group or a name "step". Everything else is plain log output. If a metric appears several times
// on a line, the last value counts.
//
// A training that diverges prints nan, -nan, NaN, inf, Infinity or 1e400: each is a value that is
// not finite, in JSON too, and so is null for a metric that the Study asks for. The newest line
// that names a metric decides, so an earlier value never hides such a value. If the expression's
// group for the value matches digits only, such words are read in the place of digits
// (metric_pattern.h).
//
// The step of a line is the step that it names. Otherwise, with filter.step, it is the newest step
// that this expression has read, on this line or before, and 0 until then. Without it a JSON line
// counts as the step after the last one; with a regular expression a line does so if it repeats a
// metric of the current step.
//
// Bounds: a line counts up to kMaxLineBytes (regular expressions see the end of a longer line), and
// a report holds kMaxMetrics metrics, with preference for metrics that the Study asks for. Names
// that are not UTF-8 or hold a NUL are left out, so that api::read_report accepts every report.
// Never fails, whatever the bytes. Not synchronised; no IO; the caller passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/study/study.h"
#include "api/trial/report.h"
#include "api/trial/trial.h"
#include "base/json.h"
#include "runtime/metric_pattern.h"
#include "runtime/near_miss.h"
#include "runtime/output_lines.h"

namespace fettle::runtime {

inline constexpr std::size_t kMaxMetrics = api::kMaxReportMetrics;
inline constexpr std::size_t kMaxMetricName = api::kLongestMetricName;
inline constexpr std::size_t kMaxCheckpointName = api::kLongestCheckpointName;

struct MetricLinesOptions {
  api::MetricsFilter filter = {};               // RE2 syntax; regex "" = JSON lines
  std::vector<std::int64_t> rungs = {};         // ascending
  std::vector<api::Objective> objectives = {};  // the curve keeps their best and newest values
  // Other metrics that the Study asks for. If these and the objectives are empty, it asks for all.
  std::vector<std::string> constraints = {};
};

// The options for the trials of `study`.
MetricLinesOptions metric_options(const api::Study& study);

class MetricLines {
 public:
  // `pattern`: compiled from options.filter; null = it is compiled here.
  explicit MetricLines(const MetricLinesOptions& options,
                       std::shared_ptr<const MetricPattern> pattern = nullptr);
  ~MetricLines();
  MetricLines(const MetricLines&) = delete;
  MetricLines& operator=(const MetricLines&) = delete;

  void feed(std::string_view bytes, std::int64_t now_ms);
  // The program has ended by itself: a last line without a newline counts too. Must not be called
  // for a killed program, whose last line may end within a number.
  void finish(std::int64_t now_ms);

  // Whether a metric or a checkpoint was read.
  bool has_report() const { return lines_ > 0; }
  // Whether a metric was read that the Study asks for.
  bool has_result() const { return has_result_; }
  const api::Report& report() const { return report_; }
  // Lines that were understood; grows when the report changes.
  std::int64_t lines() const { return lines_; }
  // Whether the step of a line was counted, because the line did not name it.
  bool has_counted() const { return has_counted_; }
  // True if a rung was reached or the final result came since the last call: do not hold the report
  // back.
  bool take_urgent();

  // Why there is no report. No more lines are noted in it once there is a report.
  const NearMiss& near_miss() const { return near_miss_; }
  // Describes a correct line, for near_miss().
  std::string expected_line() const;
  // At the end of a program that did report: the parts of its output that did not count, for
  // people; "" = none.
  std::string remarks() const;

 private:
  struct Found;
  // Lines that name a metric without a number for it, since its last value.
  struct Unread {
    std::int64_t lines = 0;
    std::int64_t line = -1;  // the newest such line
  };

  void line(std::string_view text, bool cut);
  void json_line(std::string_view text);
  void json_member(const std::string& name, const Json& value, std::string_view text, Found& found);
  void regex_line(std::string_view original);
  void regex_match(std::string_view name, std::string_view text, std::string_view line,
                   Found& found);
  void read_step(std::string_view text);
  // `step_may_stay`: a line that names no step may belong to the current one.
  void add(Found found, bool step_may_stay);
  std::int64_t step_of(const Found& found, bool step_may_stay) const;
  bool comes_after_the_end(const Found& found) const;
  void note_unread(const std::string& metric);
  void miss_json(std::string_view text);
  void miss_name(std::string_view text, const Found& found);
  void miss_cut(std::string_view text);
  bool names_a_wanted_metric(std::string_view text) const;
  bool is_wanted(const std::string& metric) const { return wanted_.count(metric) > 0; }
  void keep_room_for(Found& found);

  std::shared_ptr<const MetricPattern> pattern_;  // null: JSON lines
  std::int64_t first_step_ = 1;
  api::CurveNeeds needs_;
  std::set<std::string> wanted_;  // the metrics that the Study asks for; empty: all
  OutputLines output_;
  NearMiss near_miss_;
  api::Report report_;
  bool urgent_ = false;
  bool has_result_ = false;
  bool has_counted_ = false;
  std::int64_t lines_ = 0;
  std::int64_t now_ms_ = 0;
  std::int64_t read_step_ = 0;            // by filter.step
  std::set<std::string> at_step_;         // metrics seen at the current step
  std::int64_t line_ = 0;                 // lines seen
  std::map<std::string, Unread> unread_;  // of metrics that the Study asks for
  std::string unread_step_;               // the first invalid step, as it was written
  std::int64_t furthest_step_ = 0;
  bool printed_on_ = false;  // after the final result
};

}  // namespace fettle::runtime
