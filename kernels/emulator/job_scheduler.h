// JobScheduler: several jobs under way, each on its own thread of the operating system, one running
// at a time. When the running job calls let_others_run(), a draw decides which job continues. So
// the same seed gives the same run, and no two jobs race.
//
// Threads, not fibers, because a job's private state is `static thread_local`: a block's shared
// memory (device_functions.h). Threads are kept from one run to the next. Used by the thread that
// created it; let_others_run() by the jobs.
#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/philox.h"

namespace fettle::kernels::emulator {

class JobScheduler {
 public:
  // This thread's JobScheduler. A child of fork(), which lacks the other threads, gets a new
  // object.
  static JobScheduler& of_this_thread();
  ~JobScheduler();
  JobScheduler(const JobScheduler&) = delete;
  JobScheduler& operator=(const JobScheduler&) = delete;

  // Runs job(0), ..., job(count - 1), the first on this thread. Returns when all have ended.
  void run(unsigned count, std::uint64_t seed, std::uint64_t stream,
           const std::function<void(unsigned)>& job);

  // Called by a job: draws the job that continues, and returns when the caller has the turn again.
  // Outside a job it does nothing.
  static void let_others_run();

 private:
  struct Slot {
    std::condition_variable has_turn;
    std::thread thread;  // none for the first
  };

  JobScheduler() : process_(getpid()) {}
  void add_slots(unsigned count);
  void run_thread(unsigned mine);  // a thread's body
  bool do_job(unsigned mine);
  void draw(unsigned mine);
  void give_turn(unsigned to);
  void wait_for_turn(unsigned mine);

  const pid_t process_;
  std::mutex mutex_;
  unsigned turn_ = 0;
  bool ending_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  // Accessed only by the thread that has the turn.
  const std::function<void(unsigned)>* job_ = nullptr;
  std::vector<unsigned> under_way_;
  Random random_{0};
};

}  // namespace fettle::kernels::emulator
