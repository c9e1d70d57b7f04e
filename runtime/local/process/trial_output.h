// TrialOutput: the output of one run of a trial, which goes to the run's log and becomes metric
// reports.
//
// It knows nothing of processes. Owned by the supervisor's poll loop; not synchronised; writes only
// the log. Times are Unix milliseconds, handed in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/local/process/output_metrics.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/process/trial_log.h"

namespace fettle::local {

class TrialOutput {
 public:
  // For the run that the command starts. With several workers, standard error also holds the output
  // of all but the first, so it is only logged.
  explicit TrialOutput(const SupervisorCommand& command);

  void feed(OutputMetrics::Stream stream, std::string_view bytes, std::int64_t now_ms);
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
