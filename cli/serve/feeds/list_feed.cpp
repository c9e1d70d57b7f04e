#include "cli/serve/feeds/list_feed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json.h"
#include "cli/serve/feeds/events.h"

namespace fettle::cli {
namespace {

// No Study has such a name.
constexpr const char* kTrouble = " trouble";
constexpr const char* kSeen = " seen";

}  // namespace

void ListFeed::see(const std::map<std::string, StudyList::Row>& rows) {
  if (feed_.contains(kTrouble)) feed_.set(kTrouble, trouble_json(std::nullopt));
  feed_.set(kSeen, "true");
  std::vector<std::string> gone;
  for (const auto& [name, stamp] : stamps_) {
    if (!rows.contains(name)) gone.push_back(name);
  }
  for (const std::string& name : gone) {
    feed_.remove(name);
    stamps_.erase(name);
  }
  for (const auto& [name, row] : rows) {
    const auto [stamp, is_new] = stamps_.try_emplace(name, row.stamp);
    if (!is_new && stamp->second == row.stamp) continue;
    stamp->second = row.stamp;
    feed_.set(name, row.data.dump());
  }
}

void ListFeed::see(const Error& error) { feed_.set(kTrouble, trouble_json(error)); }

std::string ListFeed::rows_json(const std::vector<std::string>& names) const {
  std::string json = "\"studies\":[";
  for (const std::string& name : names) {
    if (!name.starts_with(' ')) json += (json.back() == '[' ? "" : ",") + feed_.part(name);
  }
  return json + ']';
}

std::string ListFeed::events_since(std::optional<FeedPosition>& position) const {
  const FeedPosition here = feed_.here();
  if (here.number == 0 || position == here) return "";
  const bool is_new = !position || !feed_.knows(*position);
  const std::vector<std::string> names =
      feed_.changed_since(is_new ? FeedPosition{here.epoch, 0} : *position);
  const bool first = is_new || std::ranges::find(names, kSeen) != names.end();
  position = here;
  std::string text;
  if (std::ranges::find(names, kTrouble) != names.end()) {
    text = event_text("trouble", feed_.part(kTrouble));
  }
  if (!feed_.contains(kSeen)) return text;  // it could not be listed even once
  if (!first) return text + event_text("change", '{' + rows_json(names) + '}', here.text());
  std::vector<std::string> all = feed_.changed_since({here.epoch, 0});
  std::ranges::sort(all);
  return text + event_text("document",
                           "{\"place\":" + Json(place_).dump() + ',' + rows_json(all) + '}',
                           here.text());
}

}  // namespace fettle::cli
