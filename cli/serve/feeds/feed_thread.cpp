#include "cli/serve/feeds/feed_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread.h"

namespace fettle::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The interval of checks for due work while pages listen.
constexpr std::int64_t kTickMs = 50;
// A poll that takes long is followed by a rest of this many times its duration.
constexpr std::int64_t kRestFactor = 5;

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<std::unique_ptr<FeedThread>> FeedThread::start(std::unique_ptr<Followed> followed,
                                                      std::int64_t poll_ms) {
  std::unique_ptr<FeedThread> made(new FeedThread(std::move(followed), poll_ms));
  FETTLE_ASSIGN(made->thread_, start_thread([self = made.get()] { self->run(); }));
  return made;
}

FeedThread::~FeedThread() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool FeedThread::listen(std::shared_ptr<EventSink> sink, std::optional<FeedPosition> position) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return false;
    audience_.add(std::move(sink), position);
    has_news_ = true;
  }
  wake_.notify_all();
  return true;
}

void FeedThread::run() {
  const auto tell = [this](std::optional<FeedPosition>& position) {
    return followed_->events_since(position);
  };
  std::int64_t poll_at_ms = 0;
  std::int64_t heard_at_ms = steady_ms();
  bool is_heard = true;
  for (;;) {
    std::int64_t now_ms = steady_ms();
    if (is_heard && now_ms >= poll_at_ms) {
      followed_->poll(now_ms);
      const std::int64_t took_ms = steady_ms() - now_ms;
      now_ms += took_ms;
      poll_at_ms = now_ms + std::max(poll_ms_ - took_ms, kRestFactor * took_ms);
    }
    std::unique_lock lock(mutex_);
    audience_.pump(tell, now_ms);
    is_heard = !audience_.is_empty();
    if (is_heard) heard_at_ms = now_ms;
    if (stops_ || now_ms - heard_at_ms > kLingerMs) break;
    has_news_ = false;
    wake_.wait_for(lock, std::chrono::milliseconds(kTickMs),
                   [this] { return stops_ || has_news_; });
  }
  over_ = true;
  audience_.end();
}

}  // namespace fettle::cli
