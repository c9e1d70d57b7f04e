// CollectiveGuard: a thread that sees when work that GPUs do together does not come to an end,
// and gives it up, with its name.
//
// No thread waits for this work when it is enqueued, and a thread that waits for what comes after
// it waits in a call that may never return. So the guard watches: the communicator's own word, the
// members' connections, and the clock, which runs from when a piece of work is the oldest that is
// not done. It takes nothing from the connections, and is at rest where no work is under way.
// began() and verdict() are for the thread that enqueues.
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

#include "kernels/cuda/communicator.h"
#include "trainer/parallel/termination.h"

namespace fettle::trainer {

class CollectiveGuard {
 public:
  // Why and in what it was given up.
  struct Verdict {
    std::string name;
    bool late = false;  // the time was up
    std::string words;  // the communicator's, if it had any
  };

  // `connections`: of the members (membership.h). `communicator` must outlive the guard.
  // Once this process was told to end, what is under way is given up when its patience is over.
  CollectiveGuard(kernels::Communicator& communicator, std::vector<int> connections,
                  std::chrono::milliseconds limit, Termination termination = {});
  ~CollectiveGuard();
  CollectiveGuard(const CollectiveGuard&) = delete;
  CollectiveGuard& operator=(const CollectiveGuard&) = delete;

  // Before something is enqueued. What is not the communicator's ends with ended().
  void began(std::string name);
  void ended();
  // None: all that has begun is done or may still come to an end.
  std::optional<Verdict> verdict();

 private:
  using Clock = std::chrono::steady_clock;
  void run();
  void count_done();
  std::optional<Verdict> judge();
  bool somebody_is_lost();

  kernels::Communicator& communicator_;
  const std::vector<int> connections_;  // of the members; only peeked at
  const std::chrono::milliseconds limit_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> under_way_;  // guarded by mutex_, as all below
  std::int64_t done_ = 0;              // of the communicator's work
  Clock::time_point oldest_since_;
  std::optional<Clock::time_point> trouble_since_;
  LastWait last_wait_;
  std::optional<Verdict> verdict_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace fettle::trainer
