// Watchdog: a thread that barks when what it watches takes too long, with its name.
//
// For calls that may never return, so that the thread that made them cannot look at the clock. One
// thread watches and rests; `bark` runs on the watchdog's own, at most once a watch.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace fettle::trainer {

class Watchdog {
 public:
  using Bark = std::function<void(const std::string& what)>;

  Watchdog(std::chrono::milliseconds limit, Bark bark);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void watch(std::string what);
  // Waits for a bark that has begun. Returns whether there was one since watch().
  bool rest();
  bool has_barked() const;

 private:
  void run();

  const std::chrono::milliseconds limit_;
  const Bark bark_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;  // "": nothing
  std::chrono::steady_clock::time_point until_;
  bool barking_ = false;
  bool barked_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace fettle::trainer
