#include "runtime/kubernetes/log_metrics.h"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <utility>

namespace fettle::kubernetes {
namespace {

// The n-th try of a log after one that failed comes so much later.
constexpr std::int64_t kRetryFirstMs = 250;
constexpr std::int64_t kRetryMostMs = 15'000;

std::chrono::milliseconds retry_after(int tries) {
  return std::chrono::milliseconds(std::min(kRetryMostMs, kRetryFirstMs << std::min(tries, 10)));
}

}  // namespace

// Guarded by LogMetrics::mutex_, but for `source`, which never changes.
struct LogMetrics::Log {
  LogSource source;
  std::int64_t order = 0;
  LogReading reading;
  bool ended = false;      // the pod prints no more
  bool active = false;     // a thread has it
  bool forgotten = false;  // nobody wants it any more
  int tries = 0;           // in a row that failed
  std::int64_t published_ms = 0;
  std::stop_source following;  // ends the stream that follows it
};

LogMetrics::LogMetrics(kube::Client& client, control::Clock& clock, Changed changed)
    : client_(client), clock_(clock), changed_(std::move(changed)) {}

LogMetrics::~LogMetrics() { stop(); }

void LogMetrics::stop() {
  for (Lane* lane : {&running_, &ended_}) {
    std::vector<std::jthread> threads;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      threads.swap(lane->threads);
    }
    for (std::jthread& thread : threads) thread.request_stop();
  }  // joins
}

LogReading LogMetrics::read(const LogSource& source, bool ended) {
  std::unique_lock lock(mutex_);
  LogPtr& log = logs_[source.uid];
  const bool is_new = log == nullptr;
  if (is_new) {
    log = std::make_shared<Log>();
    log->source = source;
    log->order = next_++;
    log->reading.since_ms = clock_.now_ms();
  }
  const LogPtr found = log;
  const bool has_just_ended = ended && !found->ended;
  found->ended = ended;
  const bool waits = !found->reading.complete && !found->active;
  if (waits && (is_new || has_just_ended)) enqueue(ended ? ended_ : running_, found);
  if (has_just_ended) news_.notify_all();
  if (is_new) drop_oldest();
  LogReading reading = found->reading;
  std::stop_source following = found->following;
  lock.unlock();
  // What follows a log need not notice that it has ended; it is read once more anyway.
  if (has_just_ended) following.request_stop();
  return reading;
}

LogReading LogMetrics::recall(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find(uid);
  return found == logs_.end() ? LogReading() : found->second->reading;
}

void LogMetrics::forget(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find(uid);
  if (found == logs_.end()) return;
  found->second->forgotten = true;
  logs_.erase(found);
}

void LogMetrics::enqueue(Lane& lane, const LogPtr& log) {
  lane.waiting.push_back(log);
  const bool all_busy = lane.idle < static_cast<int>(lane.waiting.size());
  if (!stopped_ && all_busy && static_cast<int>(lane.threads.size()) < lane.most) {
    lane.threads.emplace_back([this, &lane](const std::stop_token& stop) { work(lane, stop); });
  }
  news_.notify_all();
}

void LogMetrics::drop_oldest() {
  if (logs_.size() <= kMostLogs) return;
  const auto oldest = std::min_element(
      logs_.begin(), logs_.end(),
      [](const auto& a, const auto& b) { return a.second->order < b.second->order; });
  oldest->second->forgotten = true;
  logs_.erase(oldest);
}

void LogMetrics::work(Lane& lane, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ++lane.idle;
    news_.wait(lock, stop, [&] { return !lane.waiting.empty(); });
    --lane.idle;
    if (stop.stop_requested()) return;
    const LogPtr log = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    // One that has ended meanwhile waits in the other lane.
    if (log->active || (log->ended && &lane == &running_)) continue;
    log->active = true;
    while (!log->reading.complete && !log->forgotten && !stop.stop_requested()) {
      const bool follow = !log->ended;
      lock.unlock();
      const Status outcome = read_through(log, follow, stop);
      lock.lock();
      settle(log, outcome);
      if (log->reading.complete || stop.stop_requested()) break;
      // A stream that ended by itself is soon followed by news of the pod's end.
      news_.wait_for(lock, stop, retry_after(log->tries),
                     [&] { return (follow && log->ended) || log->forgotten; });
    }
    log->active = false;
    lock.unlock();
    changed_(log->source.trial);
    lock.lock();
  }
}

void LogMetrics::settle(const LogPtr& log, const Status& outcome) {
  if (outcome.ok()) {
    log->tries = 0;
    log->reading.complete = log->ended;
    return;
  }
  ++log->tries;
  const bool is_gone = outcome.error().code == ErrorCode::kNotFound;
  if (!is_gone && !(log->ended && log->tries >= kMostLogTries)) return;
  log->reading.complete = true;
  log->reading.trouble = "its log could not be read: " + outcome.error().message;
}

Status LogMetrics::read_through(const LogPtr& log, bool follow, const std::stop_token& stop) {
  runtime::MetricLines lines(log->source.metrics);
  kube::Client::LogOptions options;
  options.container = log->source.container;
  options.follow = follow;
  std::int64_t understood = 0;
  const auto on_line = [&](std::string_view line) {
    lines.feed(line, clock_.now_ms());
    lines.feed("\n", clock_.now_ms());
    if (lines.lines() == understood) return true;
    understood = lines.lines();
    return publish(log, lines, lines.take_urgent());
  };
  std::stop_source end;
  {
    const std::lock_guard lock(mutex_);
    options.follow = follow && !log->ended;
    log->following = end;
  }
  const std::stop_callback also(stop, [&end] { end.request_stop(); });
  FETTLE_TRY(client_.read_log(log->source.pod, options, on_line, end.get_token()));
  if (end.stop_requested()) return Error{ErrorCode::kUnavailable, "cut short"};
  lines.finish(clock_.now_ms());
  if (lines.has_report()) publish(log, lines, /*urgent=*/true);
  return success();
}

// A log that is read again says what is known before it says more.
bool LogMetrics::publish(const LogPtr& log, const runtime::MetricLines& lines, bool urgent) {
  const std::int64_t now_ms = clock_.now_ms();
  {
    const std::lock_guard lock(mutex_);
    if (log->forgotten) return false;
    auto& known = log->reading.report;
    if (known && lines.report().step < known->step) return true;
    if (!urgent && known && now_ms < log->published_ms + kPublishMs) return true;
    known = lines.report();
    log->published_ms = now_ms;
  }
  changed_(log->source.trial);
  return true;
}

}  // namespace fettle::kubernetes
