// Claims: what the runs of one Session have of this machine, told to all other Sessions on it.
//
// Each run has a file in a directory that everybody on the machine shares. Its text says what the
// run has or waits for; flock() on it says that this still holds. The runner locks it (shared)
// until the run has begun; the run's guard has it locked from then on, so that it is free when the
// last process of the run is gone, however runner and supervisor ended. A file that nobody locks
// counts for nothing. Whoever decides reads and writes under a lock on the directory itself.
// A run that waits says so once in kStillHereMs; if its runner was stopped, others pass it.
// Where the directory cannot be used, each Session counts its own runs (problem() says why).
// Thread-safe. Nothing waits longer than a few milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/local/run/room.h"

namespace fettle::local {

inline constexpr std::int64_t kStillHereMs = 10'000;

// FETTLE_MACHINE_DIR, else /tmp/fettle-machine.
std::string claims_directory();

// What this process may use.
Room this_machine();

class Claims {
 public:
  // `directory` is made if it is missing. "": only this Session's runs count.
  Claims(std::string study, Room room, std::string directory);
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  const Room& room() const { return room_; }
  // Why other Sessions are not heard of; "" = they are.
  const std::string& problem() const { return problem_; }

  // Gives `run` what it needs. kUnavailable: not now, and in words what it waits for; from then on
  // it has its place in the queue, until it is asked again or release() is called.
  Result<std::vector<GpuName>> take(const std::string& run, const Need& need);
  // Gives a run that has begun that much more; all or nothing. Who waits goes first.
  Result<std::vector<GpuName>> add(const std::string& run, const Need& more);
  // The file that the guard of a run is to hold; "" = none.
  std::string file(const std::string& run) const;
  // The guard holds the file, or soon will not be there any more.
  void hand_over(const std::string& run);
  // The run has ended, or wants nothing any more.
  void release(const std::string& run);
  // Says that the runs that wait still do, and keeps those who tidy /tmp from the files.
  void touch();

 private:
  struct Own {
    Claim claim;
    int fd = -1;  // locked; -1: handed over, or there is no file
  };

  Result<Grant> decide(const Claim& wanted) const;
  Status store(Own& own);
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  const std::string study_;
  const Room room_;
  const std::string directory_;
  std::string problem_;
  mutable std::mutex mutex_;
  std::map<std::string, Own> own_;  // by run
};

// What all Sessions have and wait for in that directory.
std::vector<Claim> read_claims(const std::string& directory);

}  // namespace fettle::local
