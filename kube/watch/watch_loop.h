// WatchLoop: drives the list and watch protocol (watcher.h) of one resource in one namespace, or in
// all: one thread, one connection. Passes its objects to a WatchSink, on that thread.
//
// start(), request_stop() and join() are called by one thread; the rest by any. No rate limit
// delays watches or the lists of informers.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/json.h"
#include "kube/client/call_made.h"
#include "kube/client/http.h"
#include "kube/watch/watcher.h"

namespace fettle::kube {

inline constexpr std::chrono::milliseconds kListDeadline{30'000};
// Bookmarks come about every minute, so a watch that is silent for longer is dead.
inline constexpr std::chrono::milliseconds kWatchIdle{150'000};
// A watch that has been open for this long is good, even if nothing has arrived.
inline constexpr std::chrono::milliseconds kGoodWatch{5'000};

// Receives the objects.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  // A list replaces the cached objects; list_begins() precedes its request. Without list_ends() it
  // failed.
  virtual void list_begins() = 0;
  virtual void listed(const Json& object) = 0;
  virtual void list_ends(const std::string& version) = 0;
  virtual void changed(const Json& object) = 0;
  virtual void gone(const Json& object) = 0;
  virtual void advanced(const std::string& version) = 0;
  // An error for the log.
  virtual void error(const std::string& message) = 0;
};

class WatchLoop {
 public:
  WatchLoop(HttpTransport& transport, WatchSink& sink, WatchTarget target, std::uint64_t seed,
            std::function<void(const CallMade&)> on_call);
  ~WatchLoop();

  void start();
  void request_stop();
  void join();

  // False if `most` passed or the loop was stopped.
  bool wait_listed(std::chrono::milliseconds most);
  std::optional<std::string> last_error() const;
  // Returns the newest error if for at least this long no watch has lasted kGoodWatch, even if
  // lists succeed: repeated lists hide a watch that may not begin.
  std::optional<std::string> trouble(std::chrono::milliseconds least) const;
  // Whether the latest list was refused: no rights, or no such resource. It is retried all the
  // same.
  bool is_refused() const;

 private:
  void run(const std::stop_token& stop);
  void list(const SendList& send, const std::stop_token& stop);
  void watch(const SendWatch& send, const std::stop_token& stop);
  void pause(std::chrono::milliseconds time, const std::stop_token& stop);
  void feed(const WatcherInput& input, const std::stop_token& stop);
  void execute(WatcherOutput& output);
  void log(const std::string& message) const;
  void set_error(const std::optional<std::string>& message);
  std::string name() const;
  void count(std::string_view verb, const HttpResult& result, SteadyTime began) const;

  HttpTransport& transport_;
  WatchSink& sink_;
  const WatchTarget target_;
  const std::function<void(const CallMade&)> on_call_;

  // State of the thread.
  WatcherState state_;
  std::optional<WatcherOutput> next_;  // SendList, SendWatch or Wait: the next action
  bool end_watch_ = false;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool listed_ = false;
  bool refused_ = false;
  std::optional<std::string> error_;
  std::string trouble_;  // the newest error, even after later successes
  std::optional<SteadyTime> failing_since_;
  std::optional<SteadyTime> watching_since_;  // absent = no watch is open
  std::jthread thread_;
};

}  // namespace fettle::kube
