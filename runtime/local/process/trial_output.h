// The output of one run of a trial: TrialOutput writes it to the run's log and turns it into metric
// reports, which OutputMetrics reads from its two streams.
//
// Both know nothing of processes. Owned by the supervisor's poll loop; not synchronised; only the
// log is written. Times are Unix milliseconds, handed in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/local/log/trial_log.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/metric_lines.h"

namespace fettle::local {

// The report of a run, read from its standard output and its standard error.
//
// Progress bars and Python's logging write to standard error, so it is read as well; on a cluster a
// container's log holds both. The two are never mixed: they come through two pipes, in no common
// order, and steps are counted by order. The report comes from standard output once that has held a
// metric that the Study asks for, else from standard error once that has; before that, from
// standard output if it has a report at all.
class OutputMetrics {
 public:
  enum class Stream { kOutput, kErrors };

  explicit OutputMetrics(const runtime::MetricLinesOptions& options);

  void feed(Stream stream, std::string_view bytes, std::int64_t now_ms);
  // See MetricLines::finish: not for a program that was killed.
  void finish(std::int64_t now_ms);

  bool has_report() const { return chosen().has_report(); }
  const api::Report& report() const { return chosen().report(); }
  // Grows when the report may have changed.
  std::int64_t lines() const { return output_.lines() + errors_.lines(); }
  bool take_urgent();
  // Why there is no report; "" if there is one.
  std::string silence() const;
  // At the end: the parts of the output that did not count (MetricLines::remarks); "" = none.
  std::string remarks() const { return chosen().remarks(); }

 private:
  OutputMetrics(const runtime::MetricLinesOptions& options,
                const std::shared_ptr<const runtime::MetricPattern>& pattern);
  const runtime::MetricLines& chosen() const;

  runtime::MetricLines output_;
  runtime::MetricLines errors_;
};

class TrialOutput {
 public:
  // For the run that the command starts. With several workers, standard error also holds the output
  // of all but the first, so it is only logged.
  explicit TrialOutput(const SupervisorCommand& command);

  void feed(OutputMetrics::Stream stream, std::string_view bytes, std::int64_t now_ms);
  // Output of several runs, which is logged and not read.
  void log_only(std::string_view bytes) { log_.append(bytes); }
  // Completes the log. `is_whole`: the program was not killed, so its last line counts even without
  // a newline. Nothing can be fed afterwards.
  void finish(bool is_whole, std::int64_t now_ms);
  // Removes the evidence that the run began: its log.
  void remove() const;

  // Whether the run has printed anything.
  bool has_begun() const { return log_.bytes() > 0; }
  const OutputMetrics& metrics() const { return metrics_; }
  const TrialLog& log() const { return log_; }

  // When a report will be due; far away if there is no news.
  std::int64_t report_wake_ms() const;
  // Whether a report is due: there is news, and it is urgent or kReportIntervalMs have passed.
  bool report_due(std::int64_t now_ms) const { return now_ms >= report_wake_ms(); }
  const api::Report& take_report(std::int64_t now_ms);

 private:
  const std::string log_path_;
  const bool only_logs_errors_;
  TrialLog log_;
  OutputMetrics metrics_;
  bool urgent_ = false;
  std::int64_t reported_lines_ = 0;
  std::int64_t reported_ms_ = 0;
};

}  // namespace fettle::local
