#include "trainer/parallel/watchdog.h"

#include <utility>

namespace fettle::trainer {

Watchdog::Watchdog(std::chrono::milliseconds limit, Bark bark)
    : limit_(limit), bark_(std::move(bark)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(std::string what) {
  {
    const std::scoped_lock lock(mutex_);
    what_ = std::move(what);
    until_ = std::chrono::steady_clock::now() + limit_;
    barked_ = false;
  }
  changed_.notify_all();
}

bool Watchdog::rest() {
  std::unique_lock lock(mutex_);
  what_.clear();
  changed_.wait(lock, [this] { return !barking_; });
  return barked_;
}

bool Watchdog::has_barked() const {
  const std::scoped_lock lock(mutex_);
  return barked_;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (what_.empty()) {
      changed_.wait(lock, [this] { return ends_ || !what_.empty(); });
    } else if (std::chrono::steady_clock::now() < until_) {
      changed_.wait_until(lock, until_);
    } else {
      const std::string what = std::exchange(what_, "");
      barking_ = barked_ = true;
      lock.unlock();
      bark_(what);
      lock.lock();
      barking_ = false;
      changed_.notify_all();
    }
  }
}

}  // namespace fettle::trainer
