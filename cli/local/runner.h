// Runner: the running part of `fettle run`: the manager on its own thread, signals and the display
// on this one.
//
// The first signal stops the trials gently, a second one kills them. After a third one a supervisor
// that does not answer (it was stopped, its disk hangs) is killed, and in the end abandoned: see
// RunnerExit. All state is in the store, so nothing here needs saving.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cli/common/interrupt.h"
#include "cli/views/display.h"
#include "cli/views/live_view.h"
#include "core/control/manager.h"
#include "runtime/local/session.h"

namespace fettle::cli {

// How run() ended without an error.
enum class RunnerExit {
  kFinished,     // the study has finished
  kSuspended,    // the study is suspended, and its trials have stopped
  kInterrupted,  // by a signal; the study can be resumed
  // By signals, but a thread hangs that still uses Runner and Session. Neither may be destroyed:
  // end the process with _exit().
  kAbandoned,
};

class Runner {
 public:
  Runner(local::Session& session, Interrupt& interrupt, Display& display,
         const control::Key& study);
  ~Runner();

  // Runs until the study has finished, or the trials have stopped after a suspension or a signal.
  // kIo: the environment failed; the study can be resumed. Once.
  Result<RunnerExit> run();

  // The study as last seen.
  const RunView& view() const { return live_.view(); }

 private:
  using Clock = std::chrono::steady_clock;
  // The supervisor after the third signal.
  enum class Supervisor { kMayAnswer, kKilled, kHangs };

  void work();
  // Serves signals and the display until work() has ended (true), or hangs with the supervisor
  // (false). `seen`: the first failure to read the store, which stops the trials.
  bool await_work(Status& seen);
  void store_last_reports();
  // Returns the state of the study in the store.
  StudyState study_state();
  void wait();
  void on_signals(int count);
  // Kills the supervisor if it has not ended some time after the third signal.
  Supervisor escalate_shutdown();
  Status refresh();
  // Reports when the disk is full and when there is space again; checks for space meanwhile.
  void watch_disk();
  // Applies requests of other processes (fettle scale).
  void apply_workers_requests();

  local::Session& session_;
  Interrupt& interrupt_;
  Display& display_;
  const control::Key key_;
  control::Observer observer_;
  control::Manager manager_;
  LiveView live_;
  int signals_ = 0;
  bool disk_is_full_ = false;
  std::int64_t next_disk_check_ms_ = 0;
  std::optional<Clock::time_point> third_signal_;
  Supervisor supervisor_ = Supervisor::kMayAnswer;
  int done_fd_ = -1;  // readable when work() has ended
  std::atomic<bool> stopping_{false};
  std::atomic<bool> done_{false};
  Status outcome_ = success();  // of work(); read after it has ended
};

}  // namespace fettle::cli
