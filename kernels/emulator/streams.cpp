#include "kernels/emulator/streams.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/emulator/emulator.h"

namespace fettle::kernels::emulator {

struct DeviceQueues {
  std::recursive_mutex lock;
  std::vector<WorkQueue*> all;
  std::unique_ptr<WorkQueue> nameless;  // the default stream
};

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

// The pause between two checks of slow work that everything waits for.
constexpr auto kNap = std::chrono::microseconds(20);

Streams streams_from_environment() {
  const char* const streams = std::getenv("FETTLE_EMULATOR_STREAMS");
  const std::string_view text = streams == nullptr ? "" : streams;
  if (text == "late") return Streams::kLate;
  return text == "others-first" ? Streams::kOthersFirst : Streams::kAtOnce;
}

std::atomic<Streams>& when_streams_run() {
  static std::atomic<Streams> streams = streams_from_environment();
  return streams;
}

int device_from_environment() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? 0 : std::atoi(visible);
}

thread_local int the_device = device_from_environment();

// Never destroyed: static objects may own streams.
DeviceQueues& queues_of(int device) {
  static std::mutex& lock = *new std::mutex();
  static auto& all = *new std::map<int, DeviceQueues>();
  const std::lock_guard guard(lock);
  return all[device];
}

}  // namespace

void use_device(int number) { the_device = number; }
int device_in_use() { return the_device; }

void set_streams(Streams streams) {
  finish_all_queues();
  when_streams_run() = streams;
}

Streams streams_in_use() { return when_streams_run(); }

WorkQueue& default_queue() {
  DeviceQueues& device = queues_of(the_device);
  const Lock lock(device.lock);
  if (device.nameless == nullptr) device.nameless = std::make_unique<WorkQueue>();
  return *device.nameless;
}

WorkQueue::WorkQueue() : device_(queues_of(the_device)) {
  const Lock lock(device_.lock);
  device_.all.push_back(this);
}

WorkQueue::~WorkQueue() {
  const Lock lock(device_.lock);
  finish();
  std::erase(device_.all, this);
}

void WorkQueue::add(Work work) {
  add_slow([work = std::move(work)] {
    work();
    return true;
  });
}

void WorkQueue::add_slow(SlowWork work) { add(Item{std::move(work), nullptr, nullptr}); }

void WorkQueue::add_wait(std::shared_ptr<Mark> mark) { add(Item{{}, std::move(mark), nullptr}); }

std::shared_ptr<Mark> WorkQueue::add_mark() {
  auto mark = std::make_shared<Mark>(this);
  add(Item{{}, nullptr, mark});
  return mark;
}

void WorkQueue::add(Item item) {
  const Lock lock(device_.lock);
  items_.push_back(std::move(item));
  if (when_streams_run() == Streams::kAtOnce) run_what_can();
}

bool WorkQueue::step() {
  if (items_.empty()) return false;
  Item& first = items_.front();
  if (first.awaited != nullptr && !first.awaited->done) return false;
  if (first.work && !first.work()) return false;
  const std::shared_ptr<Mark> reached = std::move(first.reached);
  items_.pop_front();
  if (reached == nullptr) return true;
  reached->when = std::chrono::steady_clock::now();
  reached->done = true;
  return true;
}

bool WorkQueue::let_others_run() {
  bool ran = false;
  for (WorkQueue* const other : device_.all) {
    while (other != this && other->step()) ran = true;
  }
  return ran;
}

// Runs all queues as far as possible without waiting: one may release another.
void WorkQueue::run_what_can() {
  do {
    while (step()) {
    }
  } while (let_others_run());
}

template <class Enough>
void WorkQueue::run_until(Enough enough) {
  while (!enough()) {
    const Streams streams = when_streams_run();
    bool ran = streams == Streams::kLate ? false : let_others_run();
    ran = step() || ran;
    if (ran || items_.empty()) continue;
    const std::shared_ptr<Mark> awaited = items_.front().awaited;
    if (awaited != nullptr && streams == Streams::kLate) {
      emulator::finish(*awaited);
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
}

void WorkQueue::finish() {
  const Lock lock(device_.lock);
  run_until([this] { return items_.empty(); });
}

void finish(const Mark& mark) {
  if (mark.done) return;
  const Lock lock(mark.queue->device_.lock);
  if (!mark.done) mark.queue->run_until([&mark] { return mark.done.load(); });
}

void finish_all_queues() {
  DeviceQueues& device = queues_of(the_device);
  const Lock lock(device.lock);
  for (WorkQueue* const queue : device.all) queue->finish();
}

}  // namespace fettle::kernels::emulator
