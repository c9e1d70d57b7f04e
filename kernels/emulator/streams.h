// When the emulator does what is enqueued on streams: at once, or late, when the host waits for it.
//
// Late, a stream runs only as far as the host waits for, and what it waits for itself (events of
// other streams) comes first. Then work that forgets to wait for another stream finds what was
// there before. Or, with "others first", the streams that the host does not wait for run ahead, as
// far as events let them: then work that should have waited has overwritten what others still read.
// A graph's branches are done in one of the orders that its dependencies allow: by turns with the
// rest ("at once"), as late as possible, or as early ("others first").
// Work may also take its time (what other GPUs have a part in): its stream stands still meanwhile,
// and others run.
//
// Streams belong to the device of the thread that makes them. Usable from several threads at once;
// the work of a device is done under one lock. Only runtime.cpp, nccl.cpp and tests include this
// file.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>

#include "kernels/emulator/cuda_runtime.h"

namespace fettle::kernels::emulator {

using Work = std::function<void()>;
// Asked when its turn has come, and again until it says that it is done.
using SlowWork = std::function<bool()>;

class WorkQueue;

// A place in a queue, as an event marks it.
struct Mark {
  explicit Mark(WorkQueue* of) : queue(of) {}
  WorkQueue* const queue;
  std::chrono::steady_clock::time_point when;  // it was done
  std::atomic<bool> done = false;
};

struct DeviceQueues;

// What was enqueued on a stream and is not done.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(Work work);
  void add_slow(SlowWork work);
  // What is added afterwards happens after `mark`.
  void add_wait(std::shared_ptr<Mark> mark);
  std::shared_ptr<Mark> add_mark();

  // Does all of it.
  void finish();

 private:
  friend void finish(const Mark& mark);
  friend void finish_all_queues();
  struct Item {
    SlowWork work;                  // may be empty
    std::shared_ptr<Mark> awaited;  // may be none, as the next
    std::shared_ptr<Mark> reached;
  };
  void add(Item item);
  // Does the first of it, if it can be done now.
  bool step();
  bool let_others_run();
  void run_what_can();
  template <class Enough>
  void run_until(Enough enough);

  DeviceQueues& device_;
  std::deque<Item> items_;
};

// Of this thread's device, for work that names no stream.
WorkQueue& default_queue();

// Enqueues it on a stream, which must not be captured.
void order_slow(cudaStream_t stream, SlowWork work);

// Until the mark is done.
void finish(const Mark& mark);
// Of this thread's device.
void finish_all_queues();

}  // namespace fettle::kernels::emulator
