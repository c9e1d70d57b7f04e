#include "kube/events/event_recorder.h"

#include <limits>
#include <utility>

namespace fettle::kube {
namespace {

// The longest time between two checks for series that are due.
constexpr std::chrono::seconds kTick{60};

std::int64_t unix_now() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventRecorder::EventRecorder(Client& client, EventRecorderOptions options)
    : client_(client),
      options_(std::move(options)),
      series_(options_.controller, options_.instance) {}

EventRecorder::~EventRecorder() { stop(); }

void EventRecorder::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void EventRecorder::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void EventRecorder::record(Occurrence occurrence) {
  if (occurrence.at_ms == 0) occurrence.at_ms = unix_now();
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < kMaxQueuedEvents) {
      queue_.push_back(std::move(occurrence));
      changed_.notify_all();
      return;
    }
  }
  drop("too many at once: " + occurrence.reason + ": " + occurrence.note);
}

std::uint64_t EventRecorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventRecorder::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (const std::optional<Occurrence> occurrence = next(kTick, stop)) {
      if (const auto event = series_.add(*occurrence)) write(*event, stop);
    }
    for (const EventWrite& event : series_.due(unix_now())) write(event, stop);
  }
  drain();
}

// Takes the next occurrence off the queue; absent if `most` passed.
std::optional<Occurrence> EventRecorder::next(std::chrono::milliseconds most,
                                              const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, most, [&] { return !queue_.empty(); });
  if (queue_.empty()) return std::nullopt;
  Occurrence out = std::move(queue_.front());
  queue_.pop_front();
  return out;
}

// Retries until the event is written or refused, or was tried often enough.
void EventRecorder::write(const EventWrite& event, const std::stop_token& stop) {
  for (int tries = 1;; ++tries) {
    const Status written = try_write(event);
    if (written.ok()) return;
    const bool later = written.error().code == ErrorCode::kUnavailable;
    if (!later || tries == kMaxEventTries || stop.stop_requested()) {
      return drop(written.error().message);
    }
    std::unique_lock lock(mutex_);
    // Only a stop ends it early; then one more try follows.
    changed_.wait_for(lock, stop, options_.retry, [] { return false; });
  }
}

Status EventRecorder::try_write(const EventWrite& event) {
  if (!event.create) {
    const Result<Written> patched = client_.patch(kEvents, event.key, "", event.body);
    if (patched.ok()) return success();
    if (patched.error().code != ErrorCode::kNotFound) return patched.error();
  }
  const Result<Written> created = client_.create(kEvents, event.key.ns, event.whole);
  // Only this process uses the name: it exists because an earlier try, or its echo, went through.
  if (created.ok() || created.error().code == ErrorCode::kAlreadyExists) return success();
  return created.error();
}

void EventRecorder::drain() {
  const auto end = std::chrono::steady_clock::now() + kEventDrain;
  const auto write_once = [&](const EventWrite& event) {
    if (std::chrono::steady_clock::now() >= end) return drop("stopped before it was written");
    if (const Status written = try_write(event); !written.ok()) drop(written.error().message);
  };
  // With a stop token that never stops; 0: does not wait for more.
  while (const std::optional<Occurrence> occurrence = next(std::chrono::milliseconds(0), {})) {
    if (const auto event = series_.add(*occurrence)) write_once(*event);
  }
  // So late that every series is over; half the maximum, so that no difference overflows.
  for (const EventWrite& event : series_.due(std::numeric_limits<std::int64_t>::max() / 2)) {
    write_once(event);
  }
}

void EventRecorder::drop(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    ++dropped_;
  }
  if (options_.on_error) options_.on_error("an event was dropped: " + why);
}

}  // namespace fettle::kube
