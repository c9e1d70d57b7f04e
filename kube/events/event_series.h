// EventSeries: decides which events (events.k8s.io/v1) to write when one occurs repeatedly.
//
// The first occurrence creates an Event; the second makes it a series at once; further events are
// counted and written every kSeriesRefresh, and a last time after kSeriesQuiet without any, which
// ends the series. Two occurrences are equal if object, type, reason, action and note are. These
// are client-go's rules, except that the note counts too: a patch of a series cannot change it.
// Pure: time is an argument. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

inline constexpr std::int64_t kSeriesRefreshMs = 30 * 60'000;
inline constexpr std::int64_t kSeriesQuietMs = 6 * 60'000;
// Most series in memory; beyond that each occurrence is a separate event.
inline constexpr std::size_t kMaxSeries = 1000;
// Limits of the API (pkg/apis/core/validation/events.go), in bytes.
inline constexpr std::size_t kMaxNote = 1024;
inline constexpr std::size_t kMaxReason = 128;

// The subject of an event.
struct EventSubject {
  Resource resource;
  ObjectKey key;
  std::string uid;
  std::string resource_version;
};

struct Occurrence {
  EventSubject about;
  bool warning = false;
  std::string reason;  // CamelCase
  std::string action;  // the action done or tried, CamelCase; "" = the reason
  std::string note;    // for people; cut at kMaxNote
  std::int64_t at_ms = 0;
};

struct EventWrite {
  ObjectKey key;
  bool create = true;  // else a merge patch of the series
  Json body;
  Json whole;  // created if a patch finds no event (they expire after an hour)
};

class EventSeries {
 public:
  // Names of events consist of `instance` and a number: no two recorders may share an instance.
  EventSeries(std::string controller, std::string_view instance);

  // Returns the write for an occurrence, if any is needed.
  std::optional<EventWrite> add(const Occurrence& occurrence);
  // Returns the writes that are due.
  std::vector<EventWrite> due(std::int64_t now_ms);

 private:
  struct Series {
    ObjectKey key;
    Json event;  // as created
    std::int64_t count = 1;
    std::int64_t last_ms = 0;
    std::int64_t written_ms = 0;
    std::int64_t written_count = 1;
  };
  static EventWrite write(Series& series, std::int64_t now_ms);
  ObjectKey next_key(const Occurrence& occurrence);
  Json make_event(const Occurrence& occurrence, const ObjectKey& key) const;

  const std::string controller_;
  const std::string instance_;
  std::uint64_t made_ = 0;
  std::map<std::string, Series> series_;  // by identity_of()
};

}  // namespace fettle::kube
