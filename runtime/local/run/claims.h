// Claims: the GPUs, cores and memory that the runs of one Session hold, visible to all other
// Sessions on this machine.
//
// Each run has a file in a directory that all users of the machine share. Its text records the
// resources that the run holds or waits for; flock() on it says that this is still true. The runner
// locks it (shared) until the run has begun, and the run's guard from then on, so it is free when
// the last process of the run has ended, however runner and supervisor ended. A file without a lock
// does not count. Every decision reads and writes under a lock on the directory itself. A run that
// waits renews its file at least every kClaimLifetimeMs; if its runner was stopped, others overtake
// it. If the directory cannot be used, each Session counts only its own runs (problem()).
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

inline constexpr std::int64_t kClaimLifetimeMs = 10'000;

// FETTLE_MACHINE_DIR, else /tmp/fettle-machine.
std::string claims_directory();

// The resources that this process may use.
Room this_machine();

class Claims {
 public:
  // `directory` is made if it is missing. "": only this Session's runs count.
  Claims(std::string study, Room room, std::string directory);
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  const Room& room() const { return room_; }
  // Why other Sessions are not counted; "" = they are counted.
  const std::string& problem() const { return problem_; }

  // Gives `run` the resources that it needs, unless some are missing now. The run then keeps its
  // place in the queue until it asks again or release() is called.
  Grant take(const std::string& run, const Need& need);
  // Gives a run that has begun more resources, all or nothing, after all waiting runs.
  Grant add(const std::string& run, const Need& more);
  // The file that the guard of a run holds; "" = none.
  std::string file(const std::string& run) const;
  // The claim of a run that has begun is another one's from now on.
  void rename(const std::string& run, const std::string& to);
  // Whether runs of other Sessions wait for room. False if that is not known.
  bool others_wait() const;
  // The guard holds the file from now on.
  void hand_over(const std::string& run);
  // The run has ended, or no longer waits.
  void release(const std::string& run);
  // Renews the files: the runs still wait, and cleaners of /tmp leave recent files alone.
  void renew();

 private:
  struct Own {
    Claim claim;
    int fd = -1;  // locked; -1: handed over, or there is no file
  };

  Grant decide(const Claim& wanted) const;
  std::vector<Claim> claims_of_others() const;
  Status store(Own& own);
  std::string locked() const { return "another process has locked " + directory_; }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  const std::string study_;
  const Room room_;
  const std::string directory_;
  std::string problem_;
  mutable std::mutex mutex_;
  std::map<std::string, Own> own_;  // by run
};

// All claims of all Sessions, read from the files in that directory.
std::vector<Claim> read_claims(const std::string& directory);

}  // namespace fettle::local
