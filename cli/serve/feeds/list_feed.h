// ListFeed: turns the rows of the list of Studies into the server-sent events of its page and of
// the page that compares Studies:
//
//   document  {"place", "studies"}: all rows; again when a Study was deleted
//   change    {"studies"}: rows that have changed
//   trouble   {"code", "message"}: as in study_feed.h
//
// Pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cli/serve/feeds/feed.h"
#include "cli/serve/feeds/study_list.h"

namespace fettle::cli {

class ListFeed {
 public:
  // `place`: as StudySource::place().
  ListFeed(std::uint64_t epoch, std::string place) : feed_(epoch), place_(std::move(place)) {}

  void see(const std::map<std::string, StudyList::Row>& rows);
  void see(const Error& error);

  // Returns the events for a reader at `position` (absent: a new one), and moves it. "" = none.
  std::string events_since(std::optional<FeedPosition>& position) const;

 private:
  std::string rows_json(const std::vector<std::string>& names) const;

  Feed feed_;
  const std::string place_;
  std::map<std::string, std::string> stamps_;  // of the rows that are in the feed
};

}  // namespace fettle::cli
