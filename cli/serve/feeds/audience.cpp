#include "cli/serve/feeds/audience.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fettle::cli {

struct Audience::Told {
  std::optional<FeedPosition> from;
  std::optional<FeedPosition> to;
  std::string text;
};

void Audience::add(std::shared_ptr<EventSink> sink, std::optional<FeedPosition> position) {
  sink->send("retry: 1000\n\n");
  readers_.push_back({std::move(sink), position, 0, 0});
}

void Audience::pump(const Tell& tell, std::int64_t now_ms) {
  std::vector<Told> told;  // most readers are at one position
  std::erase_if(readers_, [&](Reader& reader) {
    if (reader.sink->is_closed()) return true;
    if (reader.bytes_at_ms == 0) reader.bytes_at_ms = now_ms;
    if (reader.sink->pending() > kMostUnread || now_ms - reader.event_at_ms < kBetweenEventsMs) {
      return false;
    }
    auto found = std::ranges::find(told, reader.position, &Told::from);
    if (found == told.end()) {
      Told made{reader.position, reader.position, ""};
      made.text = tell(made.to);
      found = told.insert(told.end(), std::move(made));
    }
    reader.position = found->to;
    const bool is_due = now_ms - reader.bytes_at_ms >= kCommentEveryMs;
    const std::string& text = found->text;
    if (text.empty() && !is_due) return false;
    if (!text.empty()) reader.event_at_ms = now_ms;
    reader.bytes_at_ms = now_ms;
    if (reader.sink->send(text.empty() ? ": still here\n\n" : text)) return false;
    reader.sink->end();
    return true;
  });
}

void Audience::end() {
  for (Reader& reader : readers_) reader.sink->end();
  readers_.clear();
}

}  // namespace fettle::cli
