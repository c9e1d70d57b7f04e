#include "cli/serve/jobs.h"

#include <utility>

#include "base/thread.h"

namespace fettle::cli {

Jobs::~Jobs() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    waiting_.clear();
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status Jobs::start() {
  for (std::size_t i = 0; i < kThreads; ++i) {
    FETTLE_ASSIGN(std::thread thread, start_thread([this] { run(); }));
    threads_.push_back(std::move(thread));
  }
  return success();
}

bool Jobs::add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back(std::move(job));
  }
  wake_.notify_one();
  return true;
}

void Jobs::run() {
  std::unique_ptr<StudySource> source;
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (source == nullptr) {
      auto made = make_source_();
      if (!made.ok()) {
        job(made.error());
        continue;
      }
      source = *std::move(made);
    }
    job(source.get());
  }
}

}  // namespace fettle::cli
