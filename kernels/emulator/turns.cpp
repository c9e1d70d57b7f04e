#include "kernels/emulator/turns.h"

#include <vector>

namespace fettle::kernels::emulator {
namespace {

// The job of this thread.
thread_local Turns* current = nullptr;
thread_local unsigned number_of_current = 0;

}  // namespace

Turns& Turns::of_this_thread() {
  thread_local std::unique_ptr<Turns> mine;
  // Threads that fork() did not copy cannot be joined.
  if (mine != nullptr && mine->process_ != getpid()) {
    [[maybe_unused]] const Turns* const of_the_parent = mine.release();
  }
  if (mine == nullptr) mine.reset(new Turns());
  return *mine;
}

Turns::~Turns() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    for (const auto& seat : seats_) seat->has_turn.notify_one();
  }
  for (const auto& seat : seats_) {
    if (seat->thread.joinable()) seat->thread.join();
  }
}

void Turns::run(unsigned count, std::uint64_t seed, std::uint64_t stream,
                const std::function<void(unsigned)>& job) {
  seat(count);
  job_ = &job;
  random_ = Random(seed, stream);
  for (unsigned i = 0; i < count; ++i) under_way_.push_back(i);
  draw(0);
  if (do_job(0)) wait_for_turn(0);  // the last of the others returns the turn
  job_ = nullptr;
}

void Turns::seat(unsigned count) {
  const std::scoped_lock lock(mutex_);
  while (seats_.size() < count) {
    const auto number = static_cast<unsigned>(seats_.size());
    seats_.push_back(std::make_unique<Seat>());
    if (number > 0) {
      seats_.back()->thread = std::thread([this, number] { stay(number); });
    }
  }
}

void Turns::stay(unsigned mine) {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      Seat& seat = *seats_[mine];
      seat.has_turn.wait(lock, [&] { return ending_ || turn_ == mine; });
      if (ending_) return;
    }
    do_job(mine);
  }
}

// Runs the job; returns whether others are under way. One of them then has the turn, else the first
// thread.
bool Turns::do_job(unsigned mine) {
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

void Turns::let_others_run() {
  if (current != nullptr) current->draw(number_of_current);
}

void Turns::draw(unsigned mine) {
  const unsigned next = under_way_[random_.below(under_way_.size())];
  if (next == mine) return;
  give_turn(next);
  wait_for_turn(mine);
}

void Turns::give_turn(unsigned to) {
  const std::scoped_lock lock(mutex_);
  turn_ = to;
  seats_[to]->has_turn.notify_one();
}

void Turns::wait_for_turn(unsigned mine) {
  std::unique_lock lock(mutex_);
  seats_[mine]->has_turn.wait(lock, [&] { return turn_ == mine; });
}

}  // namespace fettle::kernels::emulator
