#include "kernels/emulator/job_scheduler.h"

#include <vector>

namespace fettle::kernels::emulator {
namespace {

// The job of this thread.
thread_local JobScheduler* current = nullptr;
thread_local unsigned number_of_current = 0;

}  // namespace

JobScheduler& JobScheduler::of_this_thread() {
  thread_local std::unique_ptr<JobScheduler> mine;
  // Threads that fork() did not copy cannot be joined.
  if (mine != nullptr && mine->process_ != getpid()) {
    [[maybe_unused]] const JobScheduler* const of_the_parent = mine.release();
  }
  if (mine == nullptr) mine.reset(new JobScheduler());
  return *mine;
}

JobScheduler::~JobScheduler() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (const auto& slot : slots_) slot->has_turn.notify_one();
  }
  for (const auto& slot : slots_) {
    if (slot->thread.joinable()) slot->thread.join();
  }
}

void JobScheduler::run(unsigned count, std::uint64_t seed, std::uint64_t stream,
                       const std::function<void(unsigned)>& job) {
  add_slots(count);
  job_ = &job;
  random_ = Random(seed, stream);
  for (unsigned i = 0; i < count; ++i) under_way_.push_back(i);
  draw(0);
  if (do_job(0)) wait_for_turn(0);  // the last of the others returns the turn
  job_ = nullptr;
}

void JobScheduler::add_slots(unsigned count) {
  const std::scoped_lock lock(mutex_);
  while (slots_.size() < count) {
    const auto number = static_cast<unsigned>(slots_.size());
    slots_.push_back(std::make_unique<Slot>());
    if (number > 0) {
      slots_.back()->thread = std::thread([this, number] { run_thread(number); });
    }
  }
}

void JobScheduler::run_thread(unsigned mine) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      Slot& slot = *slots_[mine];
      slot.has_turn.wait(lock, [&] { return ending_ || turn_ == mine; });
      if (ending_) return;
    }
    do_job(mine);
  }
}

// Runs the job; returns whether others are under way. One of them then has the turn, else the first
// thread.
bool JobScheduler::do_job(unsigned mine) {
  current = this;
  number_of_current = mine;
  (*job_)(mine);
  current = nullptr;
  std::erase(under_way_, mine);
  const bool others = !under_way_.empty();
  if (others) {
    give_turn(under_way_[random_.below(under_way_.size())]);
  } else if (mine != 0) {
    give_turn(0);
  }
  return others;
}

void JobScheduler::let_others_run() {
  if (current != nullptr) current->draw(number_of_current);
}

void JobScheduler::draw(unsigned mine) {
  const unsigned next = under_way_[random_.below(under_way_.size())];
  if (next == mine) return;
  give_turn(next);
  wait_for_turn(mine);
}

void JobScheduler::give_turn(unsigned to) {
  const std::scoped_lock lock(mutex_);
  turn_ = to;
  slots_[to]->has_turn.notify_one();
}

void JobScheduler::wait_for_turn(unsigned mine) {
  std::unique_lock lock(mutex_);
  slots_[mine]->has_turn.wait(lock, [&] { return turn_ == mine; });
}

}  // namespace fettle::kernels::emulator
