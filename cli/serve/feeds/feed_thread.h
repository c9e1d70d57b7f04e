// FeedThread: a thread that reads a Study, or the list of them, while pages listen, and sends them
// what has changed. It ends a while after the last page has gone.
//
// listen() and is_over() may be called by any thread; the object is made and destroyed by one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/serve/feeds/audience.h"
#include "cli/serve/feeds/list_feed.h"
#include "cli/serve/feeds/study_feed.h"
#include "cli/serve/feeds/study_list.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

// The reader of a FeedThread, used by its thread alone.
class Followed {
 public:
  virtual ~Followed() = default;
  // Reads what has changed.
  virtual void poll(std::int64_t now_ms) = 0;
  virtual std::string events_since(std::optional<FeedPosition>& position) const = 0;
};

class FeedThread {
 public:
  static constexpr std::int64_t kLingerMs = 30'000;  // without a page

  // kUnavailable: no thread. `poll_ms`: between two polls; longer if one takes long.
  static Result<std::unique_ptr<FeedThread>> start(std::unique_ptr<Followed> followed,
                                                   std::int64_t poll_ms);
  ~FeedThread();
  FeedThread(const FeedThread&) = delete;
  FeedThread& operator=(const FeedThread&) = delete;

  // Adds a page. False: it is over; take another one.
  bool listen(std::shared_ptr<EventSink> sink, std::optional<FeedPosition> position);
  bool is_over() const { return over_; }

 private:
  FeedThread(std::unique_ptr<Followed> followed, std::int64_t poll_ms)
      : followed_(std::move(followed)), poll_ms_(poll_ms) {}
  void run();

  const std::unique_ptr<Followed> followed_;
  const std::int64_t poll_ms_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Audience audience_;     // under mutex_
  bool has_news_ = true;  // a page has come; under mutex_
  bool stops_ = false;    // under mutex_
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// A Study that is followed, with estimates by a thread of their own.
std::unique_ptr<Followed> follow_study(std::unique_ptr<StudySource> source, std::string study,
                                       std::uint64_t epoch);
// The list of Studies; `only`: these names; empty = all.
std::unique_ptr<Followed> follow_list(std::unique_ptr<StudySource> source,
                                      std::vector<std::string> only, std::uint64_t epoch);

}  // namespace fettle::cli
