#include "runtime/kubernetes/log/log_metrics.h"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <system_error>
#include <utility>

#include "api/fields/field.h"
#include "base/check.h"
#include "runtime/kubernetes/log/log_cursor.h"

namespace fettle::kubernetes {
namespace {

// Exponential back-off between failed reads of a log.
constexpr std::int64_t kMinRetryMs = 250;
constexpr std::int64_t kMaxRetryMs = 15'000;
// The pause grows with the silence: a log that printed nothing new for t is read again after
// t / kSilenceFraction.
constexpr std::int64_t kSilenceFraction = 4;
// If the end of a log is not reached after this many pieces, more was read than a kubelet keeps:
// the program prints as fast as the log is read, and waiting for the end would never publish a
// report.
constexpr int kMaxPiecesUnpublished = 8;
// Bytes of an answer that is no log, quoted in a message.
constexpr std::size_t kLongestExcerpt = 120;

std::int64_t retry_after(int tries) {
  return std::min(kMaxRetryMs, kMinRetryMs << std::min(tries, 10));
}

}  // namespace

// Guarded by LogMetrics::mutex_, except `source`, which is constant, and `cursor` and `lines`,
// which only the reader that took the log may touch.
struct LogMetrics::Log {
  Log(LogSource from, std::shared_ptr<const runtime::MetricPattern> pattern)
      : source(std::move(from)), lines(source.metrics, std::move(pattern)) {}

  const LogSource source;
  LogCursor cursor;
  runtime::MetricLines lines;
  std::int64_t order = 0;
  LogReading reading;
  bool ended = false;                 // the pod prints no more
  bool forgotten = false;             // by forget(), during a read
  int tries = 0;                      // failed reads in a row
  std::int64_t failing_since_ms = 0;  // when the first of them began
  std::int64_t failing_ms = 0;        // time of the first failure since the pod has ended
  int pieces = 0;                     // pieces read
  std::int64_t lines_seen = 0;        // value of lines.lines() after the last piece
  std::int64_t published = 0;         // value of lines.lines() at the last publication
  std::int64_t published_ms = 0;
};

LogMetrics::LogMetrics(kube::Client& client, control::Clock& clock, Changed changed,
                       const LogMetricsOptions& options)
    : client_(client),
      clock_(clock),
      changed_(std::move(changed)),
      readers_(options.readers),
      kept_(options.kept),
      queue_(options.calls_per_second, options.readers) {}

LogMetrics::~LogMetrics() { stop(); }

void LogMetrics::stop() {
  std::vector<std::jthread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
  }
  for (std::jthread& thread : threads) thread.request_stop();
}  // joins

LogReading LogMetrics::read(const LogSource& source, bool ended) {
  const std::lock_guard lock(mutex_);
  LogPtr& log = logs_[source.uid];
  const bool is_new = log == nullptr;
  if (is_new) {
    log = std::make_shared<Log>(source, pattern_of(source.metrics.filter));
    log->order = next_++;
    log->reading.since_ms = clock_.now_ms();
  }
  const LogReading reading = log->reading;
  const bool has_just_ended = ended && !log->ended;
  log->ended = ended;
  // Otherwise enqueue_again() has scheduled the next read.
  if (!reading.complete && (is_new || has_just_ended)) {
    const std::int64_t due_ms = clock_.now_ms() + (ended ? 0 : kFirstPauseMs);
    queue_.enqueue(source.uid, source.pod.ns, source.study, {due_ms, ended, /*failing=*/false});
    ++requests_;
    news_.notify_one();
  }
  if (is_new) drop_oldest();
  if (!stopped_ && threads_.size() < std::min(readers_, logs_.size())) {
    add_reader();
  }
  return reading;
}

// If there is no room for another thread, the running threads read on; without any, the next call
// tries again.
void LogMetrics::add_reader() {
  try {
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  } catch (const std::system_error&) {
  }
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
  queue_.remove(uid);
  logs_.erase(found);
}

// Shared by all logs of a Study: RE2 caches megabytes for a compiled expression.
std::shared_ptr<const runtime::MetricPattern> LogMetrics::pattern_of(
    const api::MetricsFilter& filter) {
  if (filter.regex.empty()) return nullptr;
  std::erase_if(patterns_, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<const runtime::MetricPattern>& known = patterns_[{filter.regex, filter.step}];
  auto pattern = known.lock();
  if (pattern == nullptr) known = pattern = runtime::compile_metrics_filter(filter);
  return pattern;
}

// Only complete logs are dropped, which are never queued (step()); the number of others is bounded
// by the number of pods.
void LogMetrics::drop_oldest() {
  if (logs_.size() <= kept_) return;
  auto oldest = logs_.end();
  for (auto at = logs_.begin(); at != logs_.end(); ++at) {
    if (!at->second->reading.complete) continue;
    if (oldest == logs_.end() || at->second->order < oldest->second->order) oldest = at;
  }
  if (oldest != logs_.end()) logs_.erase(oldest);
}

// ---- Reading -----------------------------------------------------------------------------------

void LogMetrics::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // Before step(): a request during it must not be slept through.
    std::uint64_t seen_requests = 0;
    {
      const std::lock_guard lock(mutex_);
      seen_requests = requests_;
    }
    if (step()) continue;
    std::unique_lock lock(mutex_);
    const auto changed = [&] { return seen_requests != requests_; };
    if (const std::optional<std::int64_t> next_ms = queue_.next_ms()) {
      const std::chrono::milliseconds wait(std::max<std::int64_t>(1, *next_ms - clock_.now_ms()));
      news_.wait_for(lock, stop, wait, changed);
    } else {
      news_.wait(lock, stop, changed);
    }
  }
}

LogMetrics::LogPtr LogMetrics::take() {
  const std::optional<std::string> uid = queue_.take(clock_.now_ms());
  if (!uid) return nullptr;
  const auto found = logs_.find(*uid);
  CHECK(found != logs_.end(), "a log that is complete is not queued");
  return found->second;
}

// The API server answers 404 for a pod that is gone, but also passes on the 404 of a kubelet that
// has no log of it yet, or does not know the pod after a restart.
bool LogMetrics::is_gone(const kube::ObjectKey& pod) {
  const Result<Json> found = client_.get(kube::kPods, pod);
  return !found.ok() && found.error().code == ErrorCode::kNotFound;
}

// The next piece of the log. An answer of 200 may hold a page of a proxy, or the kubelet's message
// that it cannot find the log.
Result<std::string> LogMetrics::read_piece(const Log& log) {
  const LogCursor::Window window = log.cursor.next();
  FETTLE_ASSIGN(std::string piece,
                client_.read_log_window(log.source.pod, {.container = log.source.container,
                                                         .since_ms = window.since_ms,
                                                         .tail = window.tail,
                                                         .limit_bytes = window.limit_bytes}));
  if (is_log(piece)) return piece;
  return Error{ErrorCode::kUnavailable,
               "the answer is no log: " + api::clean_text(piece, kLongestExcerpt)};
}

// Between take() and queue_.done() the log's cursor and lines are this thread's alone, so they need
// no mutex.
bool LogMetrics::step() {
  LogPtr log;
  bool had_ended = false;
  {
    const std::lock_guard lock(mutex_);
    log = take();
    if (log == nullptr) return false;
    had_ended = log->ended;
  }
  const std::int64_t asked_ms = clock_.now_ms();
  const Result<std::string> piece = read_piece(*log);
  const std::int64_t now_ms = clock_.now_ms();
  const auto on_line = [&](std::string_view line) {
    log->lines.feed(line, now_ms);
    log->lines.feed("\n", now_ms);
  };
  const bool at_end = piece.ok() && log->cursor.take(*piece, had_ended, on_line);
  const bool gone =
      !piece.ok() && piece.error().code == ErrorCode::kNotFound && is_gone(log->source.pod);
  bool has_news = false;
  {
    const std::lock_guard lock(mutex_);
    if (!log->forgotten && piece.ok()) {
      if (at_end) log->reading.read_ms = asked_ms;
      // Not log->ended: a pod that ended during the read may have printed more.
      log->reading.complete = at_end && had_ended;
      has_news = record_piece(*log, now_ms, at_end);
    } else if (!log->forgotten) {
      has_news = record_error(*log, piece.error(), asked_ms, gone);
    }
    // A request for the end of the log may have come during the read that gave it up.
    if (log->reading.complete) queue_.remove(log->source.uid);
    queue_.done(log->source.uid);
    ++requests_;
    news_.notify_one();
  }
  if (has_news) changed_(log->source.trial);
  return true;
}

// Returns whether to reconcile the trial.
bool LogMetrics::record_piece(Log& log, std::int64_t now_ms, bool at_end) {
  log.tries = 0;
  log.failing_ms = 0;
  log.reading.read_error.clear();
  ++log.pieces;
  if (log.lines.lines() != log.lines_seen) log.reading.heard_ms = now_ms;
  log.lines_seen = log.lines.lines();
  if (log.reading.complete && !log.lines.has_report()) {
    log.reading.why_no_report = log.lines.near_miss().sentence(log.lines.expected_line());
  }
  if (log.reading.complete) log.reading.remarks = log.lines.remarks();
  const bool published = publish(log, now_ms);
  if (!log.reading.complete) enqueue_again(log, now_ms, at_end);
  return published || log.reading.complete;
}

// Returns whether to reconcile the trial. The log of a pod that is gone is given up at once, the
// log of a pod that has ended after kGiveUpMs; the log of a running pod is read again.
bool LogMetrics::record_error(Log& log, const Error& error, std::int64_t asked_ms, bool is_gone) {
  const std::int64_t now_ms = clock_.now_ms();
  ++log.tries;
  if (log.ended && log.failing_ms == 0) log.failing_ms = now_ms;
  if (log.tries == 1) log.failing_since_ms = asked_ms;
  const bool is_lasting =
      log.tries >= kMaxLogTries || now_ms >= log.failing_since_ms + kWarnUnreadMs;
  const bool is_news = (is_gone || is_lasting) && log.reading.read_error.empty();
  // The first error stays: each change of its text would become another event.
  if (is_news) log.reading.read_error = "its log could not be read: " + error.message;
  const bool hopeless =
      log.ended && error.code != ErrorCode::kForbidden && now_ms >= log.failing_ms + kGiveUpMs;
  log.reading.complete = is_gone || hopeless;
  if (!log.reading.complete) {
    queue_.enqueue(log.source.uid, log.source.pod.ns, log.source.study,
                   {now_ms + retry_after(log.tries), log.ended, /*failing=*/true});
  }
  return is_news || log.reading.complete;
}

// Whether there is a newer report, and it is time to publish it.
bool LogMetrics::publish(Log& log, std::int64_t now_ms) {
  if (log.published == log.lines.lines()) return false;
  // read_ms is 0 until the log was once read to its end.
  const bool behind = log.reading.read_ms == 0 && log.pieces < kMaxPiecesUnpublished;
  if (behind) return false;
  const bool urgent = log.lines.take_urgent() || log.reading.complete || !log.reading.report;
  if (!urgent && now_ms < log.published_ms + kPublishMs) return false;
  log.reading.report = log.lines.report();
  log.published = log.lines.lines();
  log.published_ms = now_ms;
  return true;
}

void LogMetrics::enqueue_again(const Log& log, std::int64_t now_ms, bool at_end) {
  const std::int64_t silent_ms = now_ms - std::max(log.reading.heard_ms, log.reading.since_ms);
  const std::int64_t pause_ms = std::clamp(silent_ms / kSilenceFraction, kMinPauseMs, kMaxPauseMs);
  const bool at_once = !at_end || log.ended;  // more is there, or the pod ended during the read
  queue_.enqueue(log.source.uid, log.source.pod.ns, log.source.study,
                 {now_ms + (at_once ? 0 : pause_ms), log.ended, /*failing=*/false});
}

}  // namespace fettle::kubernetes
