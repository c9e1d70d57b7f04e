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
  // Starts the process. Never fails: what could not be started has ended(), with an outcome or
  // because there was no room for it. `environments`: of each worker. `open_files`: their soft
  // limit.
  SupervisedRun(const SupervisorCommand& command,
                std::vector<std::vector<std::string>> environments, int lock_fd,
                std::int64_t open_files, std::int64_t now_ms);
  ~SupervisedRun();
  SupervisedRun(const SupervisedRun&) = delete;
  SupervisedRun& operator=(const SupervisedRun&) = delete;

  pid_t guard() const { return guard_.pid; }

  // The files to poll for input; closed ones are left out.
  void add_polls(std::vector<pollfd>& polls) const;
  // Reads what is there, at most kReadBytes from each: a run that prints without end gets no more
  // of the loop than any other.
  void read(std::int64_t now_ms);
  // The grace period; call when wake_ms() has come.
  void tick(std::int64_t now_ms);
  std::int64_t wake_ms() const;
  // When a report will be due; far away if there is no news.
  std::int64_t report_wake_ms() const;

  // Sets the number of workers, where the trial is open.
  void resize(std::int64_t workers);

  // Gently: SIGTERM to its processes in turn (gentle_stop.h), SIGKILL after the grace period. The
  // first cause stands.
  void stop(StopCause cause, std::int64_t now_ms);
  // SIGKILL to all its processes, now.
  void kill(StopCause cause, std::int64_t now_ms);

  // True when no process of it is left.
  bool ended() const { return ended_; }
  // After ended(): which resource this machine had too little of for the program to begin; "" = it
  // began, or failed for another reason. Then finish() is not called and nothing is left of the
  // run.
  std::string no_room() const;
  // Removes what would say that it began: its log. After no_room().
  void forget() const;
  // Completes the log and writes outcome.json. Once, after ended().
  RunOutcome finish(std::int64_t now_ms);

  // A report that is due: there is news, and it is urgent or kReportIntervalMs have passed.
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
