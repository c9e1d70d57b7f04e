// Runner: the running part of `fettle run`: the manager on its own thread, signals and the display
// on this one.
//
// The first signal stops the trials gently, a second one kills them. After a third one a supervisor
// that does not answer (it was stopped, its disk hangs) is killed, and in the end abandoned. All
// state is in the store, so nothing here needs saving.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cli/common/interrupt.h"
#include "cli/views/display.h"
#include "cli/views/live_view.h"
#include "control/manager.h"
#include "runtime/local/session.h"

namespace fettle::cli {

class Runner {
 public:
  Runner(local::Session& session, Interrupt& interrupt, Display& display,
         const control::Key& study);
  ~Runner();

  // Runs until the study has finished, or the trials have stopped after a suspension or a signal;
  // kActive: after a signal. kIo: the environment failed; the study can be resumed.
  Result<StudyState> run();

  // run() returned although a part hangs that only the end of the process stops: destroy nothing
  // any more.
  bool has_abandoned() const { return abandoned_; }

  // The study as last seen.
  const RunView& view() const { return live_.view(); }

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  void store_last_reports();
  // Returns the state of the study in the store.
  StudyState study_state();
  void wait();
  void on_signals(int count);
  // Kills a supervisor that does not answer after the third signal; false if it hangs even then.
  bool is_patient();
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
  std::int64_t check_room_ms_ = 0;
  std::optional<Clock::time_point> last_signal_;  // the time of the third signal
  bool supervisor_killed_ = false;
  bool abandoned_ = false;
  int done_fd_ = -1;  // readable when work() has ended
  std::atomic<bool> stopping_{false};
  std::atomic<bool> done_{false};
  Status outcome_ = success();  // of work(); read after it has ended
};

}  // namespace fettle::cli
