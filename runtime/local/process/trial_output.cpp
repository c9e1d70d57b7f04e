#include "runtime/local/process/trial_output.h"

#include <unistd.h>

#include <limits>

namespace fettle::local {
namespace {

constexpr std::int64_t kReportIntervalMs = 100;

std::shared_ptr<const runtime::MetricPattern> pattern_of(const api::MetricsFilter& filter) {
  return filter.regex.empty() ? nullptr : runtime::compile_metrics_filter(filter);
}

}  // namespace

OutputMetrics::OutputMetrics(const runtime::MetricLinesOptions& options)
    : OutputMetrics(options, pattern_of(options.filter)) {}

OutputMetrics::OutputMetrics(const runtime::MetricLinesOptions& options,
                             const std::shared_ptr<const runtime::MetricPattern>& pattern)
    : output_(options, pattern), errors_(options, pattern) {}

void OutputMetrics::feed(Stream stream, std::string_view bytes, std::int64_t now_ms) {
  (stream == Stream::kOutput ? output_ : errors_).feed(bytes, now_ms);
}

void OutputMetrics::finish(std::int64_t now_ms) {
  output_.finish(now_ms);
  errors_.finish(now_ms);
}

bool OutputMetrics::take_urgent() {
  const bool output = output_.take_urgent();  // both are taken, so that neither stays urgent
  const bool errors = errors_.take_urgent();
  return output || errors;
}

const runtime::MetricLines& OutputMetrics::chosen() const {
  if (output_.has_result()) return output_;
  if (errors_.has_result()) return errors_;
  return output_.has_report() ? output_ : errors_;
}

std::string OutputMetrics::silence() const {
  if (has_report()) return "";
  return output_.near_miss().joined(errors_.near_miss()).sentence(output_.expected_line());
}

TrialOutput::TrialOutput(const SupervisorCommand& command)
    : log_path_(command.run_directory + "/output.log"),
      only_logs_errors_(command.workers.size() > 1),
      log_(log_path_),
      metrics_(command.metrics) {}

void TrialOutput::feed(OutputMetrics::Stream stream, std::string_view bytes, std::int64_t now_ms) {
  log_.append(bytes);
  if (only_logs_errors_ && stream == OutputMetrics::Stream::kErrors) return;
  metrics_.feed(stream, bytes, now_ms);
  urgent_ = metrics_.take_urgent() || urgent_;
}

void TrialOutput::finish(bool is_whole, std::int64_t now_ms) {
  if (is_whole) metrics_.finish(now_ms);
  log_.finish();
}

void TrialOutput::remove() const { ::unlink(log_path_.c_str()); }

std::int64_t TrialOutput::report_wake_ms() const {
  // There is no news since the last report.
  if (metrics_.lines() == reported_lines_) return std::numeric_limits<std::int64_t>::max();
  return urgent_ ? 0 : reported_ms_ + kReportIntervalMs;
}

const api::Report& TrialOutput::take_report(std::int64_t now_ms) {
  reported_lines_ = metrics_.lines();
  reported_ms_ = now_ms;
  urgent_ = false;
  return metrics_.report();
}

}  // namespace fettle::local
