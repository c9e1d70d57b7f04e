// Turns: jobs that are under way at once, on a thread of the operating system each, of which one
// runs at a time. Where the running one calls let_others_run(), a draw says who runs on. So the
// same seed gives the same run, and no two jobs race.
//
// Threads, not fibers, because `static thread_local` is what a job has for itself: a block's shared
// memory (device_functions.h). They are kept from one run to the next. Used by the thread that made
// it; let_others_run() by the jobs.
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

class Turns {
 public:
  // Of this thread. A child of fork(), in which the others do not exist, gets new ones.
  static Turns& of_this_thread();
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // job(0), ..., job(count - 1), the first on this thread. Returns when all have ended.
  void run(unsigned count, std::uint64_t seed, std::uint64_t stream,
           const std::function<void(unsigned)>& job);

  // Called by a job: draws who runs on, and returns when it is this one's turn again. Does nothing
  // elsewhere.
  static void let_others_run();

 private:
  struct Seat {
    std::condition_variable has_turn;
    std::thread thread;  // none for the first
  };

  Turns() : process_(getpid()) {}
  void seat(unsigned count);
  void stay(unsigned mine);  // what a thread does
  bool do_job(unsigned mine);
  void draw(unsigned mine);
  void give_turn(unsigned to);
  void wait_for_turn(unsigned mine);

  const pid_t process_;
  std::mutex mutex_;
  unsigned turn_ = 0;
  bool ending_ = false;
  std::vector<std::unique_ptr<Seat>> seats_;
  // Read and written by the thread that has the turn.
  const std::function<void(unsigned)>* job_ = nullptr;
  std::vector<unsigned> under_way_;
  Random random_{0};
};

}  // namespace fettle::kernels::emulator
