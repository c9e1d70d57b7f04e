#include "kube/events/event_series.h"

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/philox.h"
#include "base/utf8.h"
#include "kube/objects/json_write.h"

namespace fettle::kube {
namespace {

// Names of objects have at most 253 characters; the suffix that makes a name unique has 17.
constexpr std::size_t kMaxPrefix = 253 - 17;

std::string identity_of(const Occurrence& occurrence) {
  const char separator = '\0';
  std::string out(occurrence.about.resource.kind);
  for (const std::string* part :
       {&occurrence.about.key.ns, &occurrence.about.key.name, &occurrence.about.uid,
        &occurrence.reason, &occurrence.action, &occurrence.note}) {
    out += separator + *part;
  }
  return out + (occurrence.warning ? 'w' : 'n');
}

Json regarding(const EventSubject& about) {
  return Json::object({{"apiVersion", api_version(about.resource)},
                       {"kind", about.resource.kind},
                       {"namespace", about.key.ns},
                       {"name", about.key.name},
                       {"uid", about.uid},
                       {"resourceVersion", about.resource_version}});
}

}  // namespace

EventSeries::EventSeries(std::string controller, std::string_view instance)
    // The API has the same bound for the instance as for the reason.
    : controller_(std::move(controller)), instance_(utf8_excerpt(instance, kMaxReason)) {}

std::optional<EventWrite> EventSeries::add(const Occurrence& occurrence) {
  const std::string identity = identity_of(occurrence);
  const auto found = series_.find(identity);
  if (found != series_.end()) {
    Series& series = found->second;
    ++series.count;
    series.last_ms = occurrence.at_ms;
    // The first repetition is written at once.
    if (series.count > 2) return std::nullopt;  // due() writes it
    return write(series, occurrence.at_ms);
  }
  const ObjectKey key = next_key(occurrence);
  Json event = make_event(occurrence, key);
  // Beyond that the event is written and forgotten: an equal occurrence is a new event.
  if (series_.size() < kMaxSeries) {
    series_[identity] = {key,
                         event,
                         /*count=*/1,
                         /*last_ms=*/occurrence.at_ms,
                         /*written_ms=*/occurrence.at_ms,
                         /*written_count=*/1};
  }
  return EventWrite{key, /*create=*/true, event, event};
}

std::vector<EventWrite> EventSeries::due(std::int64_t now_ms) {
  std::vector<EventWrite> out;
  for (auto at = series_.begin(); at != series_.end();) {
    Series& series = at->second;
    const bool over = now_ms - series.last_ms >= kSeriesQuietMs;  // also of a single event
    const bool stale = now_ms - series.written_ms >= kSeriesRefreshMs;
    if (series.count > series.written_count && (over || stale)) {
      out.push_back(write(series, now_ms));
    }
    at = over ? series_.erase(at) : std::next(at);
  }
  return out;
}

EventWrite EventSeries::write(Series& series, std::int64_t now_ms) {
  series.written_count = series.count;
  series.written_ms = now_ms;
  Json state = Json::object(
      {{"count", series.count}, {"lastObservedTime", format_micro_time(series.last_ms)}});
  Json whole = series.event;
  whole.set("series", state);
  return {series.key, /*create=*/false, Json::object({{"series", std::move(state)}}),
          std::move(whole)};
}

// Returns a name that no other event has, not even one of this process before a restart: two starts
// differ in `at_ms` of their events.
ObjectKey EventSeries::next_key(const Occurrence& occurrence) {
  const auto process =
      std::hash<std::string>{}(instance_) ^ static_cast<std::uint64_t>(occurrence.at_ms);
  char suffix[20];
  std::snprintf(suffix, sizeof suffix, ".%016" PRIx64, mix_keys(process, made_++));
  const ObjectKey& about = occurrence.about.key;
  return {about.ns.empty() ? "default" : about.ns,
          about.name.substr(0, kMaxPrefix) + std::string(suffix)};
}

Json EventSeries::make_event(const Occurrence& occurrence, const ObjectKey& key) const {
  const std::string& action = occurrence.action.empty() ? occurrence.reason : occurrence.action;
  return Json::object({{"apiVersion", api_version(kEvents)},
                       {"kind", kEvents.kind},
                       {"metadata", Json::object({{"name", key.name}, {"namespace", key.ns}})},
                       {"eventTime", format_micro_time(occurrence.at_ms)},
                       {"type", occurrence.warning ? "Warning" : "Normal"},
                       {"reason", utf8_excerpt(occurrence.reason, kMaxReason)},
                       {"action", utf8_excerpt(action, kMaxReason)},
                       {"note", utf8_excerpt(occurrence.note, kMaxNote)},
                       {"reportingController", controller_},
                       {"reportingInstance", instance_},
                       {"regarding", regarding(occurrence.about)}});
}

}  // namespace fettle::kube
