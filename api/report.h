// Reports of training: growing one line by line, joining those of a trial's runs, comparing them.
//
// Every process that observes a training keeps its Report this way: the trainer's reporter, and the
// one that reads metrics off the output of any other program. Metrics may be non-finite. Pure
// functions; usable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/report_history.h"
#include "api/trial.h"
#include "base/result.h"

namespace fettle::api {

// What bounds a stored report, whichever program wrote it. A report that add_line() keeps is far
// smaller.
inline constexpr std::size_t kMaxReportMetrics = 32;   // and in each point of the curve
inline constexpr std::size_t kLongestMetricName = 64;  // bytes
inline constexpr std::size_t kLongestCheckpointName = 512;
inline constexpr std::size_t kMaxHistoryValues = 256;  // of all points of the curve

// Bytes of what a training waits for. A longer text is cut.
inline constexpr std::size_t kLongestWaiting = 256;

// The field manager of status.report on a cluster.
inline constexpr const char* kReportManager = "fettle-trainer";
// The kubelet's limit of a container's termination message, in bytes; it truncates longer ones.
inline constexpr std::size_t kMaxTerminationMessage = 4096;
// Metrics by which the size of a trial's GPU is chosen: what the built-in trainer has planned, and
// the most that was seen in use, both in bytes.
inline constexpr const char* kGpuMemoryPlanned = "gpu_memory_planned_bytes";
inline constexpr const char* kGpuMemoryUsed = "gpu_memory_bytes";

// What a training says at one moment.
struct ReportLine {
  std::int64_t step = 0;
  std::map<std::string, double> metrics;
  std::string checkpoint;  // newest durable one; "" = nothing new
  std::int64_t checkpoint_step = 0;
  bool final_result = false;
  // What keeps it from training: the line says this and nothing else, and the values stay. Any line
  // without it means that the wait is over.
  std::string waiting;
};

// Takes `line` into `report`: newest values, the curve (report_history.h), the checkpoint. A line
// at an earlier step than the last one means that training went back. The report holds at most
// kMaxReportMetrics metrics; more of them are left out, and names that are too long.
void add_line(Report& report, ReportLine line, const CurveNeeds& needs, std::int64_t now_ms);

// `newer` as the continuation of `earlier`, the report of the trial's runs before it: points of the
// curve that `newer` does not repeat are kept, and so is the checkpoint if it names none. The curve
// is thinned to what it `needs`.
Report join_reports(const std::optional<Report>& earlier, const Report& newer,
                    const CurveNeeds& needs);

// kInvalid: the curve has more values than kMaxHistoryValues. Field lists bound the rest.
Status check_history_values(const Report& report);

// The learning curve, ascending by step, newest values included.
std::vector<HistoryPoint> curve_of(const Report& report);

// Equality in which a non-finite metric equals a non-finite one: what survives a store.
bool same_report(const Report& a, const Report& b);

}  // namespace fettle::api
