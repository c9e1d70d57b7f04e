// SupervisedRun: one run as the supervisor sees it, from fork to outcome.json.
//
// Owned and driven by the supervisor's poll loop; not synchronised; nothing here blocks. Times are
// Unix milliseconds, handed in.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/local/process/guard.h"
#include "runtime/local/process/output_metrics.h"
#include "runtime/local/process/run_end.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/process/trial_log.h"

namespace fettle::local {

class SupervisedRun {
 public:
  // Starts the process. Never fails: a run that could not be started has ended(), with an outcome
  // or for lack of room. `environments`: one for each worker. `open_files`: their soft limit.
  SupervisedRun(const SupervisorCommand& command,
                std::vector<std::vector<std::string>> environments, int lock_fd,
                std::int64_t open_files, std::int64_t now_ms);
  ~SupervisedRun();
  SupervisedRun(const SupervisedRun&) = delete;
  SupervisedRun& operator=(const SupervisedRun&) = delete;

  pid_t guard() const { return guard_.pid; }

  // Adds the files to poll for input, except closed files.
  void add_polls(std::vector<pollfd>& polls) const;
  // Reads the available output, at most kReadBytes from each file: a run that prints without end
  // gets no more of the loop than any other.
  void read(std::int64_t now_ms);
  // Enforces the grace period; call when wake_ms() has come.
  void tick(std::int64_t now_ms);
  std::int64_t wake_ms() const;
  // When a report will be due; far away if there is no news.
  std::int64_t report_wake_ms() const;

  // Sets the number of workers, if the trial is open.
  void resize(std::int64_t workers);

  // Stops gently: SIGTERM to its processes in turn (gentle_stop.h), SIGKILL after the grace period.
  // The first cause stands.
  void stop(StopCause cause, std::int64_t now_ms);
  // Sends SIGKILL to all its processes now.
  void kill(StopCause cause, std::int64_t now_ms);

  // Whether no process of it is left.
  bool ended() const { return ended_; }
  // After ended(): the resource that this machine lacked for the program to begin; "" = it began,
  // or failed for another reason. If not "", finish() is not called and nothing is left of the run.
  std::string no_room() const;
  // Removes the evidence that it began: its log. After no_room().
  void forget() const;
  // Completes the log and writes outcome.json. Once, after ended().
  RunOutcome finish(std::int64_t now_ms);

  // Whether a report is due: there is news, and it is urgent or kReportIntervalMs have passed.
  bool report_due(std::int64_t now_ms) const;
  const api::Report& take_report(std::int64_t now_ms);

 private:
  bool read_stream(int& fd, OutputMetrics::Stream stream, std::int64_t now_ms);
  void read_status(std::int64_t now_ms);
  void drain(std::int64_t now_ms);

  const SupervisorCommand command_;
  const std::int64_t started_ms_;
  TrialLog log_;
  OutputMetrics metrics_;
  Guard guard_;
  std::string status_bytes_;
  RunEnd end_;
  bool ended_ = false;
  std::string start_error_;  // "" or why no process could be made
  bool killing_ = false;
  std::int64_t kill_at_ms_ = 0;  // end of the grace period; 0 = not stopping
  bool urgent_ = false;
  std::int64_t reported_lines_ = 0;
  std::int64_t reported_ms_ = 0;
};

}  // namespace fettle::local
