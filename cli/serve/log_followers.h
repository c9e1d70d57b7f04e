// LogFollowers: threads that follow the output of trials while pages show it. follow() and tick()
// may be called by any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "cli/serve/feeds/audience.h"
#include "cli/serve/jobs.h"
#include "cli/serve/log_tail.h"

namespace fettle::cli {

class LogFollowers {
 public:
  static constexpr std::size_t kMost = 24;  // at once

  explicit LogFollowers(MakeSource make_source) : make_source_(std::move(make_source)) {}
  ~LogFollowers();
  LogFollowers(const LogFollowers&) = delete;
  LogFollowers& operator=(const LogFollowers&) = delete;

  // Sends the output of the trial's newest run to `sink`, from byte `from` on. kUnavailable: too
  // many are followed, or there is no thread.
  Status follow(const std::string& trial, std::uint64_t from, std::shared_ptr<EventSink> sink);
  // Sends what was printed; lets go of what nobody reads. Call every quarter of a second or so.
  void tick(std::int64_t now_ms);

 private:
  struct Followed {
    explicit Followed(std::uint64_t from) : tail(from) {}
    LogTail tail;
    std::shared_ptr<EventSink> sink;
    std::stop_source stop;
    std::thread thread;
    std::int64_t sent_at_ms = 0;
    std::atomic<bool> done = false;  // the thread is about to end
  };
  void send(Followed& followed, std::int64_t now_ms);

  const MakeSource make_source_;
  std::mutex mutex_;
  std::list<std::unique_ptr<Followed>> all_;  // under mutex_
};

}  // namespace fettle::cli
