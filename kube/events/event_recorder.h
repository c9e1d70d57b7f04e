// EventRecorder: writes events for people (kubectl describe, kubectl get events) on its own thread.
// Events are best effort: nothing waits for them, and a full queue drops and counts them. start()
// and stop() are called by one thread, the rest by any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kube/client/client.h"
#include "kube/events/event_series.h"

namespace fettle::kube {

inline constexpr std::size_t kMaxQueuedEvents = 1000;
inline constexpr int kMaxEventTries = 12;
// Time in which stop() writes queued events; it then waits for the call in flight.
inline constexpr std::chrono::milliseconds kEventDrain{2'000};

struct EventRecorderOptions {
  std::string controller = "fettle.dev/operator";            // reportingController
  std::string instance;                                      // this process: its pod's name
  std::chrono::milliseconds retry{10'000};                   // between the tries of one event
  std::function<void(const std::string& message)> on_error;  // for the log; may be empty
};

class EventRecorder {
 public:
  EventRecorder(Client& client, EventRecorderOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void start();
  void stop();

  // Returns at once. `occurrence.at_ms`: 0 = now.
  void record(Occurrence occurrence);
  // Returns the number of events not written because the queue was full or the API server refused
  // them.
  std::uint64_t dropped() const;

 private:
  void run(const std::stop_token& stop);
  std::optional<Occurrence> next(std::chrono::milliseconds most, const std::stop_token& stop);
  void write(const EventWrite& event, const std::stop_token& stop);
  Status try_write(const EventWrite& event);
  void drain();
  void drop(const std::string& why);

  Client& client_;
  const EventRecorderOptions options_;
  EventSeries series_;  // of the thread
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Occurrence> queue_;
  std::uint64_t dropped_ = 0;
  std::jthread thread_;
};

}  // namespace fettle::kube
