// When the emulator does what is ordered on streams: at once, or late, when somebody waits for it.
//
// Late, a stream goes on only as far as somebody waits for, and what it waits for itself (events of
// other streams) comes first. Then an order that forgets to wait for another stream finds what was
// there before. Or, with "others first", the streams that nobody waits for run ahead, as far as
// events let them: then an order that should have waited has overwritten what others still read.
// Usable from several threads at once; late work is done under one lock. Only runtime.cpp and tests
// include this file.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>

namespace fettle::kernels::emulator {

using Work = std::function<void()>;

class WorkQueue;

// A place in a queue, as an event marks it.
struct Mark {
  WorkQueue* queue = nullptr;
  bool done = false;
  std::chrono::steady_clock::time_point when;  // it was done
};

// What a stream has been ordered and has not done.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(Work work);
  // What is added afterwards happens after `mark`.
  void add_wait(std::shared_ptr<Mark> mark);
  std::shared_ptr<Mark> add_mark();

  // Does all of it.
  void finish();

 private:
  friend void finish(const Mark& mark);
  friend void finish_all_queues();
  struct Item {
    Work work;                      // may be empty
    std::shared_ptr<Mark> awaited;  // may be none, as the next
    std::shared_ptr<Mark> reached;
  };
  void add(Item item);
  bool can_go_on() const;
  void run_first();
  void let_others_run();
  template <class Enough>
  void run_until(Enough enough);

  std::deque<Item> items_;
};

bool is_done(const Mark& mark);
// Until it is done.
void finish(const Mark& mark);
void finish_all_queues();

}  // namespace fettle::kernels::emulator
