#include "runtime/local/run/run_queue.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"
#include "core/names.h"

namespace fettle::local {
namespace {

constexpr auto kAskInterval = std::chrono::milliseconds(250);  // while a run waits
constexpr auto kKeepInterval = std::chrono::minutes(10);       // while no run waits
constexpr auto kRenewInterval = std::chrono::milliseconds(kClaimLifetimeMs / 4);

std::string name_of(const RunKey& run) { return core::run_name(run.first, run.second); }

}  // namespace

Status RunQueue::start(std::function<bool()> serve) {
  serve_ = std::move(serve);
  FETTLE_ASSIGN(thread_, start_thread([this] { serve_until_closed(); }));
  return success();
}

void RunQueue::serve_until_closed() {
  Clock::time_point renewed = Clock::now();
  bool soon = false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    const std::chrono::milliseconds pause =
        waiting_.empty() && !soon ? kKeepInterval : kAskInterval;
    woken_.wait_for(lock, pause, [this] { return closed_ || wake_; });
    wake_ = false;
    if (closed_) return;
    lock.unlock();  // serve_() calls functions of this object
    soon = serve_();
    if (Clock::now() > renewed + kRenewInterval) {
      claims_->renew();
      renewed = Clock::now();
    }
    lock.lock();
  }
}

void RunQueue::close() {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    closed_ = true;
    woken_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool RunQueue::is_closed() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return closed_;
}

void RunQueue::wake() {
  const std::lock_guard<std::mutex> guard(mutex_);
  wake_ = true;
  woken_.notify_all();
}

bool RunQueue::wait(const RunKey& run, std::chrono::milliseconds pause) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (closed_) return false;
  const Clock::time_point due = Clock::now() + pause;
  const auto found = std::ranges::find(waiting_, run, &Waiting::run);
  if (found == waiting_.end()) {
    waiting_.push_back({run, due});
  } else {
    found->due = due;
  }
  return true;
}

bool RunQueue::waits(const RunKey& run) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::ranges::find(waiting_, run, &Waiting::run) != waiting_.end();
}

// There are no more than the machine could run at once (capacity). The claims decide which of them
// comes first.
std::vector<RunKey> RunQueue::due() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const Clock::time_point now = Clock::now();
  std::vector<RunKey> runs;
  for (const Waiting& waiting : waiting_) {
    if (waiting.due <= now) runs.push_back(waiting.run);
  }
  return runs;
}

std::vector<RunKey> RunQueue::drop_waiting() {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<RunKey> dropped;
  for (const Waiting& waiting : std::exchange(waiting_, {})) {
    claims_->release(name_of(waiting.run));
    dropped.push_back(waiting.run);
  }
  return dropped;
}

// The claims do not count the open files that the supervisor needs for each run.
Grant RunQueue::admit(const RunKey& run, const Need& need) {
  Grant granted = claims_->take(name_of(run), need);
  if (!granted.ok()) return granted;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (std::ssize(admitted_) >= room().runs) {
    // It waits without a claim, because this limit is the Session's own.
    claims_->release(name_of(run));
    return {{},
            {"the limit on open files (ulimit -Hn) is enough for " +
                 std::to_string(admitted_.size()) + " trials at once",
             ""}};
  }
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.run == run; });
  admitted_.insert(run);
  return granted;
}

void RunQueue::give_to(const RunKey& run, const RunKey& worker) {
  const std::lock_guard<std::mutex> guard(mutex_);
  claims_->rename(name_of(run), name_of(worker));
  admitted_.erase(run);
  admitted_.insert(worker);
}

Grant RunQueue::extend(const RunKey& run, const Need& more) {
  return claims_->add(name_of(run), more);
}

std::string RunQueue::claim_file(const RunKey& run) const { return claims_->file(name_of(run)); }

void RunQueue::hand_over(const RunKey& run) { claims_->hand_over(name_of(run)); }

void RunQueue::release(const RunKey& run) {
  const std::lock_guard<std::mutex> guard(mutex_);
  claims_->release(name_of(run));
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.run == run; });
  admitted_.erase(run);
}

}  // namespace fettle::local
