// StudyFeed: turns what was seen of a Study, again and again, into the server-sent events of its
// page:
//
//   document  {"key", "study", "trials", "insights", "volumes"}: the page's data, once at first;
//             `key` is the Study's uid
//   change    {"study"?, "trials"?, "volumes"?}: what has changed, each trial as a whole row
//   insight   {"insights"}
//   trouble   {"code", "message"}: the Study cannot be read now; an empty message: it can again
//   gone      {"message"}: there is no such Study
//   reset     {}: another Study has the name now; the page begins anew
//
// A change comes at most once for each trial, however often it changed. Memory holds the Study as
// it is now, and no history (feed.h). Pure: times come with what was seen. Not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/serve/feeds/estimates.h"
#include "cli/serve/feeds/events.h"
#include "cli/serve/feeds/feed.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Bytes of rows in one event; a larger document continues as changes.
inline constexpr std::size_t kMostRowBytes = 2 << 20;
// Between two updates of times that pass, such as how long a trial runs, if nothing else changes.
inline constexpr std::int64_t kTimesEveryMs = 10'000;

class StudyFeed {
 public:
  explicit StudyFeed(std::uint64_t epoch) : first_epoch_(epoch), feed_(epoch) {}

  void see(RunView view);
  void see(Estimates estimates);
  // `error` of the reading; kNotFound: there is no such Study.
  void see(const Error& error);
  // Whether an estimate would know more than the newest one.
  bool wants_estimates() const;
  // The Study as it was seen last, to estimate from; nullptr before that.
  const RunView* view() const { return view_ ? &*view_ : nullptr; }

  // Returns the events for a reader at `position` (absent: a new one), and moves it. "" = none.
  std::string events_since(std::optional<FeedPosition>& position) const;

 private:
  struct SeenTrial {
    std::string version;
    bool runs = false;
  };
  bool is_another(const RunView& view) const;
  bool is_gone() const;
  void forget();
  bool update_rows(const RunView& view, bool times);
  void set_row(const RunView& view, const api::Trial& trial);
  void set_header();
  std::vector<std::string> next_parts(FeedPosition& position) const;
  std::string document(FeedPosition& position) const;
  std::string changes_since(FeedPosition& position) const;

  const std::uint64_t first_epoch_;
  Feed feed_;
  std::optional<RunView> view_;
  std::map<std::int64_t, SeenTrial> trials_;  // by index
  Estimates estimates_;
  std::int64_t times_at_ms_ = 0;  // when times that pass were last set
};

}  // namespace fettle::cli
