// Audience: the pages that follow one feed. Each gets an event at most four times a second and a
// comment every 15 seconds, and none is sent more while it has not read what was sent before.
// Pure, but for what the sinks do; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/serve/feeds/feed.h"

namespace fettle::cli {

// The end of a reader's stream: HttpStream, in tests a text.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // False: nothing can be sent any more.
  virtual bool send(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual bool is_closed() const = 0;
  virtual std::size_t pending() const = 0;
};

class Audience {
 public:
  static constexpr std::int64_t kBetweenEventsMs = 250;
  static constexpr std::int64_t kCommentEveryMs = 15'000;
  static constexpr std::size_t kMostUnread = 256 << 10;  // bytes

  // Returns the events for a reader at `position`, and moves it; "" = none.
  using Tell = std::function<std::string(std::optional<FeedPosition>& position)>;

  void add(std::shared_ptr<EventSink> sink, std::optional<FeedPosition> position);
  // Sends events that are due; forgets readers that have gone.
  void pump(const Tell& tell, std::int64_t now_ms);
  bool is_empty() const { return readers_.empty(); }
  // Ends the streams of all readers.
  void end();

 private:
  struct Reader {
    std::shared_ptr<EventSink> sink;
    std::optional<FeedPosition> position;
    std::int64_t event_at_ms = 0;
    std::int64_t bytes_at_ms = 0;
  };
  struct Told;  // the events for readers at one position

  std::list<Reader> readers_;
};

}  // namespace fettle::cli
