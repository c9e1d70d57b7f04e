#include "cli/serve/feeds/feed.h"

#include <charconv>
#include <utility>

namespace fettle::cli {
namespace {

bool read_number(std::string_view text, std::uint64_t& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

std::string FeedPosition::text() const {
  return std::to_string(epoch) + '-' + std::to_string(number);
}

std::optional<FeedPosition> FeedPosition::parse(std::string_view text) {
  const std::size_t dash = text.find('-');
  FeedPosition position;
  if (dash == std::string_view::npos || !read_number(text.substr(0, dash), position.epoch) ||
      !read_number(text.substr(dash + 1), position.number)) {
    return std::nullopt;
  }
  return position;
}

void Feed::set(const std::string& name, std::string json) {
  const auto [found, is_new] = parts_.try_emplace(name);
  Part& part = found->second;
  if (!is_new && part.json == json) return;
  if (!is_new) by_number_.erase(part.number);
  part.json = std::move(json);
  part.number = ++here_.number;
  by_number_[part.number] = name;
}

void Feed::clear() {
  parts_.clear();
  by_number_.clear();
  ++here_.epoch;
  here_.number = 0;
}

void Feed::remove(const std::string& name) {
  const auto found = parts_.find(name);
  if (found == parts_.end()) return;
  by_number_.erase(found->second.number);
  parts_.erase(found);
  ++here_.epoch;
}

const std::string& Feed::part(const std::string& name) const {
  static const std::string kNone;
  const auto found = parts_.find(name);
  return found == parts_.end() ? kNone : found->second.json;
}

std::uint64_t Feed::number_of(const std::string& name) const {
  const auto found = parts_.find(name);
  return found == parts_.end() ? 0 : found->second.number;
}

bool Feed::knows(FeedPosition position) const {
  return position.epoch == here_.epoch && position.number <= here_.number;
}

std::vector<std::string> Feed::changed_since(FeedPosition position) const {
  std::vector<std::string> names;
  for (auto at = by_number_.upper_bound(position.number); at != by_number_.end(); ++at) {
    names.push_back(at->second);
  }
  return names;
}

}  // namespace fettle::cli
