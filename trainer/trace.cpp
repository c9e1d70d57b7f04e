#include "trainer/trace.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace fettle::trainer {

namespace {

double microseconds(Trace::Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

void Trace::add(std::string_view part, std::string_view detail, Clock::time_point begin,
                Clock::time_point end) {
  std::string name(part);
  if (!detail.empty()) name += " " + std::string(detail);
  events_.push_back({std::move(name), std::string(part), begin, end});
}

std::string Trace::to_json() const {
  Json events = Json::array();
  events.push_back(Json::object(
      {{"name", "process_name"},
       {"ph", "M"},
       {"pid", rank_},
       {"args", Json::object({{"name", "fettle-trainer " + std::to_string(rank_)}})}}));
  // Spans are noted at their ends, so the first to begin need not come first.
  Clock::time_point origin = Clock::time_point::max();
  for (const Event& event : events_) origin = std::min(origin, event.begin);
  for (const Event& event : events_) {
    events.push_back(Json::object({{"name", event.name},
                                   {"cat", event.category},
                                   {"ph", "X"},
                                   {"ts", microseconds(event.begin - origin)},
                                   {"dur", microseconds(event.end - event.begin)},
                                   {"pid", rank_},
                                   {"tid", 0}}));
  }
  return Json::object({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}).dump();
}

Status Trace::write(const std::string& path) const { return write_file(path, to_json()); }

}  // namespace fettle::trainer
