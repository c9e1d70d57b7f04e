#include "cli/serve/log_followers.h"

#include <utility>

#include "base/thread.h"

namespace fettle::cli {
namespace {

void follow_to_its_end(const MakeSource& make_source, const std::string& trial, LogTail& tail,
                       std::stop_token stop) {
  const auto source = make_source();
  if (!source.ok()) return tail.end(source.error().message);
  const Status followed = (*source)->follow_log(
      trial, [&tail](std::string_view bytes) { tail.print(bytes); }, std::move(stop));
  tail.end(followed.ok() ? "" : followed.error().message);
}

}  // namespace

LogFollowers::~LogFollowers() {
  for (const auto& followed : all_) followed->stop.request_stop();
  for (const auto& followed : all_) followed->thread.join();
}

Status LogFollowers::follow(const std::string& trial, std::uint64_t from,
                            std::shared_ptr<EventSink> sink) {
  const std::lock_guard lock(mutex_);
  if (all_.size() >= kMost) {
    return Error{ErrorCode::kUnavailable, "the logs of " + std::to_string(kMost) +
                                              " trials are followed already; close one of them"};
  }
  auto made = std::make_unique<Followed>(from);
  made->sink = std::move(sink);
  FETTLE_ASSIGN(made->thread, start_thread([this, trial, followed = made.get()] {
                  follow_to_its_end(make_source_, trial, followed->tail,
                                    followed->stop.get_token());
                  followed->done = true;
                }));
  all_.push_back(std::move(made));
  return success();
}

void LogFollowers::tick(std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const std::unique_ptr<Followed>& followed) {
    if (followed->sink->is_closed()) {
      followed->stop.request_stop();
    } else {
      send(*followed, now_ms);
    }
    if (!followed->done || !(followed->sink->is_closed() || followed->tail.is_over())) return false;
    followed->sink->end();
    followed->thread.join();
    return true;
  });
}

void LogFollowers::send(Followed& followed, std::int64_t now_ms) {
  if (followed.sent_at_ms == 0) followed.sent_at_ms = now_ms;
  if (followed.sink->pending() > Audience::kMostUnread) return;
  std::string events = followed.tail.take();
  const bool is_due = now_ms - followed.sent_at_ms >= Audience::kCommentEveryMs;
  if (events.empty() && is_due) events = ": still here\n\n";
  if (events.empty()) return;
  followed.sent_at_ms = now_ms;
  followed.sink->send(events);
}

}  // namespace fettle::cli
