// CollectiveGuard: a thread that notices when joint work of the GPUs does not end, and aborts it,
// by name.
//
// No thread waits for this work when it is enqueued, and a thread that waits for later work waits
// in a call that may never return. So the guard watches the communicator's state, the members'
// connections, and the clock, which runs from the moment at which a piece of work becomes the
// oldest unfinished one. It reads nothing from the connections, and is idle if no work is under
// way.
// began(), ended() and verdict() are for the thread that enqueues.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/libraries/communicator.h"
#include "trainer/parallel/termination.h"

namespace fettle::trainer {

class CollectiveGuard {
 public:
  // The aborted work, and the reason.
  struct Verdict {
    std::string name;
    bool late = false;  // the time was up
    std::string words;  // the communicator's message, if it had any
  };

  // `connections`: to the members (membership.h). `communicator` must outlive the guard. Once this
  // process was asked to end, work under way is aborted when the patience of `termination` is over.
  CollectiveGuard(kernels::Communicator& communicator, std::vector<int> connections,
                  std::chrono::milliseconds limit, Termination termination = {});
  ~CollectiveGuard();
  CollectiveGuard(const CollectiveGuard&) = delete;
  CollectiveGuard& operator=(const CollectiveGuard&) = delete;

  // Call before work is enqueued. Work that Communicator::done() does not count needs ended().
  void began(std::string name);
  void ended();
  // Absent: all work is done or may still finish.
  std::optional<Verdict> verdict();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void count_done();
  std::optional<Verdict> judge();
  bool somebody_is_lost();

  kernels::Communicator& communicator_;
  const std::vector<int> connections_;  // to the members; only peeked at
  const std::chrono::milliseconds limit_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> under_way_;  // guarded by mutex_, as all members below
  std::int64_t done_ = 0;              // counted by the communicator
  Clock::time_point oldest_since_;
  std::optional<Clock::time_point> trouble_since_;
  LastWait last_wait_;
  std::optional<Verdict> verdict_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace fettle::trainer
