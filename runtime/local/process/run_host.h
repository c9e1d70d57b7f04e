// RunHost: a process and the runs that it trains: one run, or as a worker one after another, by the
// worker protocol (docs/worker-protocol.md).
//
// A worker starts for its first run, and until it is ready it is that run's process like any other:
// its output and its end are the run's. So a program that never speaks the protocol trains one run.
// A worker's output between two runs goes to a log of its own. A worker can report only the runs
// that it was given. Owned and driven by the supervisor's poll loop; not synchronised; nothing here
// blocks. Times are Unix milliseconds, handed in.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/local/log/trial_log.h"
#include "runtime/local/process/assignment_pipe.h"
#include "runtime/local/process/hosted_run.h"
#include "runtime/local/process/supervised_process.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/worker_conduct.h"
#include "runtime/worker_output.h"

namespace fettle::local {

class RunHost {
 public:
  using EventSink = std::function<void(const SupervisorEvent& event)>;

  // Starts the process for the run of `command` (kStart); the run has begun. Never fails: a process
  // that could not be started has ended(). For the other arguments see SupervisedProcess.
  RunHost(const SupervisorCommand& command, std::vector<std::vector<std::string>> environments,
          int lock_fd, std::int64_t open_files, EventSink sink, std::int64_t now_ms);

  pid_t guard() const { return process_->guard(); }
  std::int64_t worker() const { return worker_; }  // 0: the process of one run
  bool has(const RunKey& run) const { return runs_.contains(name_in_protocol(run)); }

  void add_polls(std::vector<pollfd>& polls) const;
  // When tick() or, `with_reports`, report() has work.
  std::int64_t wake_ms(bool with_reports) const;
  // Reads the available output, and notes the end of the process (collect()).
  void read(std::int64_t now_ms);
  // Enforces grace periods.
  void tick(std::int64_t now_ms);
  // Sends the reports that are due.
  void report(std::int64_t now_ms);

  // Gives the worker a further run (kAssign).
  void assign(const SupervisorCommand& command);
  // The worker gets no further runs: it ends after its present runs.
  void finish_worker(std::int64_t now_ms);
  void resize(std::int64_t workers) { process_->resize(workers); }
  // Ends one run, within its grace period.
  void stop_run(const RunKey& run, std::int64_t now_ms);
  // Stops or kills the process, for all its runs.
  void stop(StopCause cause, std::int64_t now_ms) { process_->stop(cause, now_ms); }
  void kill(StopCause cause, std::int64_t now_ms) { process_->kill(cause, now_ms); }

  bool ended() const { return process_->ended(); }
  // After the end of the process: ends its runs. Returns whether one was disrupted, which may mean
  // that the guard was killed.
  bool collect(std::int64_t now_ms);

 private:
  struct Assigned {
    SupervisorCommand command;
    std::unique_ptr<HostedRun> run;  // null: it has not begun
    bool announced = false;          // by a frame, not by the start of the process
    bool stops = false;              // it was asked to end
    bool overdue = false;            // it did not end within the grace period
    std::int64_t kill_at_ms = 0;     // end of the grace period; 0 = none
    void begin_grace(std::int64_t now_ms) {
      kill_at_ms = now_ms + std::max<std::int64_t>(command.grace_ms, 1);
    }
  };

  void take_output(std::string_view text, std::int64_t now_ms);
  void take_text(OutputMetrics::Stream stream, std::string_view text, std::int64_t now_ms);
  void take_frame(const runtime::WorkerFrame& frame, std::int64_t now_ms);
  void take_ready(const runtime::WorkerFrame& frame);
  void begin(Assigned& assigned, std::int64_t now_ms);
  void end(Assigned& assigned, int exit_code, std::int64_t now_ms);
  // The run has not begun. `by_worker`: the worker says that it cannot train it.
  void refuse(Assigned& assigned, const std::string& reason, bool by_worker);
  void object(const std::string& what);
  void judge(std::int64_t now_ms);
  RunOutcome outcome_by_process(Assigned& assigned, bool is_alone, std::int64_t now_ms);
  std::string no_room() const;
  std::int64_t memory(std::int64_t now_ms);

  const EventSink sink_;
  const std::int64_t worker_;
  const std::string worker_log_path_;
  std::map<std::string, Assigned> runs_;  // by their names in the protocol
  std::optional<AssignmentPipe> assignments_;
  std::optional<runtime::WorkerOutput> frames_;
  std::optional<SupervisedProcess> process_;
  std::optional<TrialLog> worker_log_;
  bool is_ready_ = false;
  std::int64_t slots_ = 1;
  std::string current_;  // the run that unmarked output belongs to; "" = none
  runtime::WorkerConduct conduct_;
  std::int64_t memory_ = 0;  // bytes, at the last sample
  std::int64_t sampled_ms_ = 0;
};

}  // namespace fettle::local
