// When the emulator does work enqueued on streams: at once, or late, when the host waits for it.
//
// A late stream runs only as far as the host waits for, after the events of other streams on which
// it waits. So work that forgets to wait for another stream finds the old contents. With "others
// first", the streams that the host does not wait for run ahead, as far as events let them, so work
// that should have waited overwrites data that others still read. A graph's branches are done in
// one of the orders that its dependencies allow: by turns with the rest ("at once"), as late as
// possible, or as early ("others first").
// Work may also take time (when other GPUs take part in it): its stream stands still meanwhile,
// and others run.
//
// Streams belong to the device of the thread that creates them. Usable from several threads at
// once; the work of a device is done under one lock. Only runtime.cpp, nccl.cpp and tests include
// this file.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "kernels/emulator/cuda_runtime.h"

namespace fettle::kernels::emulator {

using Work = std::function<void()>;
// Called when its turn has come, and again until it returns that it is done.
using SlowWork = std::function<bool()>;

class WorkQueue;

// A place in a queue, marked by an event.
struct Mark {
  explicit Mark(WorkQueue* of) : queue(of) {}
  WorkQueue* const queue;
  std::chrono::steady_clock::time_point when;  // time at which it was done
  std::atomic<bool> done = false;
};

struct DeviceQueues;

// Work enqueued on a stream and not done.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(Work work);
  void add_slow(SlowWork work);
  // Makes work added afterwards wait for `mark`.
  void add_wait(std::shared_ptr<Mark> mark);
  std::shared_ptr<Mark> add_mark();

  // Does all work in the queue.
  void finish();

 private:
  friend void finish(const Mark& mark);
  friend void finish_all_queues();
  struct Item {
    SlowWork work;                  // may be empty
    std::shared_ptr<Mark> awaited;  // may be nullptr, like `reached`
    std::shared_ptr<Mark> reached;
  };
  void add(Item item);
  // Does the first item if it can be done now.
  bool step();
  bool let_others_run();
  void run_what_can();
  template <class Enough>
  void run_until(Enough enough);

  DeviceQueues& device_;
  std::deque<Item> items_;
};

// This thread's device's queue for work that names no stream.
WorkQueue& default_queue();

// Enqueues work on a stream, which must not be captured.
void order_slow(cudaStream_t stream, SlowWork work);

// Runs until the mark is done.
void finish(const Mark& mark);
// Runs all queues of this thread's device until they are empty.
void finish_all_queues();

}  // namespace fettle::kernels::emulator
