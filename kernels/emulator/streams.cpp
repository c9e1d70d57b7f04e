#include "kernels/emulator/streams.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/emulator/emulator.h"

namespace fettle::kernels::emulator {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

Streams streams_from_environment() {
  const char* const streams = std::getenv("FETTLE_EMULATOR_STREAMS");
  const std::string_view text = streams == nullptr ? "" : streams;
  if (text == "late") return Streams::kLate;
  return text == "others-first" ? Streams::kOthersFirst : Streams::kAtOnce;
}

struct Queues {
  std::recursive_mutex lock;
  std::vector<WorkQueue*> all;
  std::atomic<Streams> streams = streams_from_environment();
};

// Never destroyed: static objects may own streams.
Queues& queues() {
  static Queues& the_one = *new Queues();
  return the_one;
}

}  // namespace

void set_streams(Streams streams) {
  finish_all_queues();
  queues().streams = streams;
}

std::string name_of(Streams streams) {
  if (streams == Streams::kAtOnce) return "AtOnce";
  return streams == Streams::kLate ? "Late" : "OthersFirst";
}

WorkQueue::WorkQueue() {
  const Lock lock(queues().lock);
  queues().all.push_back(this);
}

WorkQueue::~WorkQueue() {
  finish_all_queues();
  const Lock lock(queues().lock);
  std::erase(queues().all, this);
}

void WorkQueue::add(Work work) {
  if (queues().streams == Streams::kAtOnce) return work();
  add(Item{std::move(work), nullptr, nullptr});
}

void WorkQueue::add_wait(std::shared_ptr<Mark> mark) {
  if (!is_done(*mark)) add(Item{{}, std::move(mark), nullptr});
}

std::shared_ptr<Mark> WorkQueue::add_mark() {
  auto mark = std::make_shared<Mark>();
  mark->queue = this;
  add(Item{{}, nullptr, mark});
  if (queues().streams == Streams::kAtOnce) finish();
  return mark;
}

void WorkQueue::add(Item item) {
  const Lock lock(queues().lock);
  items_.push_back(std::move(item));
}

bool WorkQueue::can_go_on() const {
  return !items_.empty() && (items_.front().awaited == nullptr || items_.front().awaited->done);
}

void WorkQueue::run_first() {
  const Item item = std::move(items_.front());
  items_.pop_front();
  if (item.work) item.work();
  if (item.reached == nullptr) return;
  item.reached->when = std::chrono::steady_clock::now();
  item.reached->done = true;
}

void WorkQueue::let_others_run() {
  for (WorkQueue* const other : queues().all) {
    while (other != this && other->can_go_on()) other->run_first();
  }
}

template <class Enough>
void WorkQueue::run_until(Enough enough) {
  while (!enough()) {
    if (queues().streams == Streams::kOthersFirst) let_others_run();
    if (can_go_on()) {
      run_first();
    } else {
      const std::shared_ptr<Mark> awaited = items_.front().awaited;
      emulator::finish(*awaited);
    }
  }
}

void WorkQueue::finish() {
  const Lock lock(queues().lock);
  run_until([this] { return items_.empty(); });
}

bool is_done(const Mark& mark) {
  const Lock lock(queues().lock);
  return mark.done;
}

void finish(const Mark& mark) {
  const Lock lock(queues().lock);
  if (!mark.done) mark.queue->run_until([&mark] { return mark.done; });
}

void finish_all_queues() {
  const Lock lock(queues().lock);
  for (WorkQueue* const queue : queues().all) queue->finish();
}

}  // namespace fettle::kernels::emulator
