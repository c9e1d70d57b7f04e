// RunQueue: admits runs to this machine. An admitted run holds its resources (claims.h) until it is
// released; any other run waits, and is tried again when there may be room for it.
//
// Invariant: no run waits and is admitted at once. Thread-safe. One own thread calls `serve`
// between start() and close(): as soon as wake() has been called, and from time to time, since
// other Sessions send no notice.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/local/process/supervisor_wire.h"
#include "runtime/local/run/claims.h"

namespace fettle::local {

class RunQueue {
 public:
  explicit RunQueue(std::unique_ptr<Claims> claims) : claims_(std::move(claims)) {}
  ~RunQueue() { close(); }

  // `serve` tries the runs that are due(), and returns whether it should be called again soon even
  // if no run waits. kUnavailable: no thread can be made.
  Status start(std::function<bool()> serve);
  // Ends the thread; no run can begin to wait afterwards. Not from `serve`.
  void close();
  bool is_closed() const;
  // There may be room, or a first run waits: the thread sleeps long while none does.
  void wake();

  // Lets the run wait, in the order of the calls; it is not due before `pause` has passed. A run
  // that waits already keeps its place. False: closed, so it does not wait.
  bool wait(const RunKey& run, std::chrono::milliseconds pause = {});
  bool waits(const RunKey& run) const;
  std::vector<RunKey> due() const;
  // Releases all runs that wait, and returns them.
  std::vector<RunKey> drop_waiting();

  // The resources of the machine that this Session may use.
  const Room& room() const { return claims_->room(); }
  // Gives the run the resources that it needs, and ends its waiting. If some are missing now, it
  // keeps its place among the runs of all Sessions.
  Grant admit(const RunKey& run, const Need& need);
  // Gives an admitted run more resources, all or nothing, after all waiting runs.
  Grant extend(const RunKey& run, const Need& more);
  // The resources of an admitted run are a worker's from now on, which has a key of its own here.
  void give_to(const RunKey& run, const RunKey& worker);
  bool others_wait() const { return claims_->others_wait(); }
  // The file that the guard of the run holds; "" = none.
  std::string claim_file(const RunKey& run) const;
  // The guard holds the file from now on.
  void hand_over(const RunKey& run);
  // The run has ended, or no longer waits.
  void release(const RunKey& run);

 private:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    RunKey run;
    Clock::time_point due;
  };

  void serve_until_closed();

  const std::unique_ptr<Claims> claims_;
  std::function<bool()> serve_;
  mutable std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_ = false;
  bool closed_ = false;
  std::vector<Waiting> waiting_;  // the longest first
  std::set<RunKey> admitted_;
  std::thread thread_;
};

}  // namespace fettle::local
