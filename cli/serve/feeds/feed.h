// Feed: what a page shows, as named parts of JSON text, and which of them have changed since a
// reader last looked.
//
// A part keeps the number of its newest change, not its history: a reader that was away for a day
// gets each part once, as it is now, so memory is bounded by what there is to show, however long
// the feed lives. `epoch` changes when parts were removed: a reader of another epoch starts anew.
// Pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fettle::cli {

// How far a reader has read. The id of a server-sent event.
struct FeedPosition {
  std::uint64_t epoch = 0;
  std::uint64_t number = 0;
  bool operator==(const FeedPosition&) const = default;

  std::string text() const;  // "12-345"
  static std::optional<FeedPosition> parse(std::string_view text);
};

class Feed {
 public:
  // `epoch`: unlike that of any other feed that a reader may know.
  explicit Feed(std::uint64_t epoch) : here_{epoch, 0} {}

  FeedPosition here() const { return here_; }

  // Sets a part, unless it is so already.
  void set(const std::string& part, std::string json);
  // Removes all parts; begins another epoch.
  void clear();
  // Removes one part; begins another epoch if it was there.
  void remove(const std::string& part);
  bool contains(const std::string& part) const { return parts_.contains(part); }
  // "" if there is no such part.
  const std::string& part(const std::string& name) const;
  // The number of its newest change; 0 if there is no such part.
  std::uint64_t number_of(const std::string& name) const;

  // Whether a reader that has read up to `position` can continue with the changes since.
  bool knows(FeedPosition position) const;
  // The names of parts that have changed since, in the order of their changes.
  std::vector<std::string> changed_since(FeedPosition position) const;

 private:
  struct Part {
    std::string json;
    std::uint64_t number = 0;  // of its newest change
  };
  FeedPosition here_;
  std::map<std::string, Part> parts_;
  std::map<std::uint64_t, std::string> by_number_;  // names of parts by their newest change
};

}  // namespace fettle::cli
