// Session: the resources of one `fettle run` on this machine, opened in the only safe order:
// directory, lock, supervisor, store, runs.
//
// Lives on the main thread. shutdown() blocks; kill() may be called from any other thread while it
// does. When the process dies without either, the supervisor does what shutdown() would have done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "runtime/local/run/process_runs.h"
#include "runtime/local/store/layout.h"
#include "runtime/local/store/sqlite_store.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::local {

struct SessionOptions {
  std::string root = ".fettle";  // made if it is missing
  std::string study;             // name of the Study
  // Started as `executable supervise --fd N`; it must end in run_supervisor(N).
  std::string executable = "/proc/self/exe";
  std::string directory;                        // in which trials start; "" = that of this process
  std::string trainer;                          // the built-in trainer; "" = find_trainer()
  std::int64_t lock_wait_ms = 120'000;          // for a supervisor that is still cleaning up
  std::function<void(const std::string&)> say;  // receives sentences for people
  std::optional<Room> room;                     // absent: this_machine()
  std::optional<std::string> claims;            // directory in which Sessions share the room
};

// The program of the built-in trainer: $FETTLE_TRAINER, else fettle-trainer beside this executable,
// else the one in PATH.
std::string find_trainer();

class Session {
 public:
  // kUnavailable: another `fettle run` has the Study. kIo: the environment failed. Both in words.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  ~Session();

  const Layout& layout() const { return layout_; }
  SqliteStore& store() { return *store_; }
  ProcessRuns& runs() { return *runs_; }
  // The clock with which the store stamps new objects.
  control::Clock& clock() { return *clock_; }

  // Ctrl-C: stops all trials gently, each within its grace period; returns when the last has ended.
  void shutdown() { runs_->shutdown(); }
  // Ctrl-C again: kills all trials.
  void kill() { runs_->kill(); }

 private:
  Session(Layout layout, StudyLock lock) : layout_(std::move(layout)), lock_(std::move(lock)) {}

  Layout layout_;
  StudyLock lock_;
  const std::shared_ptr<control::Clock> clock_ = std::make_shared<control::SystemClock>();
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<ProcessRuns> runs_;
};

}  // namespace fettle::local
