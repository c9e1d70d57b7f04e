// Reports of training: adding a line, joining the reports of a trial's runs, comparing them.
//
// Every process that observes a training keeps its Report with these functions: the trainer's
// reporter, and the process that parses the metrics of any other program. Metrics may be
// non-finite. Pure functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/trial/report_history.h"
#include "api/trial/trial.h"
#include "base/result.h"

namespace fettle::api {

// Bounds of a stored report, whichever program wrote it. A report that add_line() keeps is far
// smaller.
inline constexpr std::size_t kMaxReportMetrics = 40;   // and in each point of the curve
inline constexpr std::size_t kLongestMetricName = 64;  // bytes
inline constexpr std::size_t kLongestCheckpointName = 512;
inline constexpr std::size_t kMaxHistoryValues = 256;  // of all points of the curve

// Bytes of ReportLine::waiting; a longer text is cut.
inline constexpr std::size_t kLongestWaiting = 256;

// The field manager of status.report on a cluster.
inline constexpr const char* kReportManager = "fettle-trainer";
// The kubelet's limit of a container's termination message, in bytes; longer messages are
// truncated.
inline constexpr std::size_t kMaxTerminationMessage = 4096;
// Metrics that choose the size of a trial's GPU, in bytes: the memory that the built-in trainer has
// planned, and the most that was seen in use.
inline constexpr const char* kGpuMemoryPlanned = "gpu_memory_planned_bytes";
inline constexpr const char* kGpuMemoryUsed = "gpu_memory_bytes";

// One line of a training's output: its report of one moment.
struct ReportLine {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;
  std::string checkpoint;  // newest durable one; "" = nothing new
  std::int64_t checkpoint_step = 0;
  bool final_result = false;
  // Why it is not training. Such a line carries this text alone, and earlier values stay. Any line
  // without it ends the wait.
  std::string waiting;
};

// Adds `line` to `report`: newest values, the curve (report_history.h), the checkpoint. A line at
// an earlier step than the last one means that training went back. After the final result, though,
// a line at its step or an earlier one replaces none of its values. The report holds at most
// kMaxReportMetrics metrics; further metrics, and names that are too long, are left out.
void add_line(Report& report, ReportLine line, const CurveNeeds& needs, std::int64_t now_ms);

// Joins `newer` to `earlier`, the report of the trial's earlier runs: keeps the points of the curve
// that `newer` does not repeat, and the checkpoint if `newer` names none. Thins the curve to the
// points that it `needs`.
Report join_reports(const std::optional<Report>& earlier, const Report& newer,
                    const CurveNeeds& needs);

// Returns kInvalid if the curve has more than kMaxHistoryValues values. Field lists bound the rest.
Status check_history_values(const Report& report);

// Returns the learning curve, ascending by step, newest values included.
std::vector<HistoryPoint> curve_of(const Report& report);

// Compares what a store preserves: any two non-finite values of a metric are equal.
bool same_report(const Report& a, const Report& b);

}  // namespace fettle::api
