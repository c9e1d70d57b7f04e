#include "trainer/trace/trace.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace fettle::trainer {

namespace {

constexpr std::int64_t kHost = 0;
constexpr std::int64_t kDevice = 1;

double microseconds(Trace::Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

Trace::Clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<Trace::Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string name_of(std::string_view part, std::string_view detail) {
  std::string name(part);
  if (!detail.empty()) name += " " + std::string(detail);
  return name;
}

// Names a row or the process.
Json naming(const char* what, std::int64_t rank, std::int64_t row, const std::string& name) {
  return Json::object({{"name", what},
                       {"ph", "M"},
                       {"pid", rank},
                       {"tid", row},
                       {"args", Json::object({{"name", name}})}});
}

}  // namespace

void Trace::attach(std::unique_ptr<kernels::Timeline> timeline,
                   std::unique_ptr<kernels::Ranges> ranges) {
  timeline_ = std::move(timeline);
  ranges_ = std::move(ranges);
  device_origin_ = Clock::now();
  attached_at_ = events_.size();
}

void Trace::detach() {
  ranges_.reset();
  if (timeline_ == nullptr) return;
  const std::vector<double> seconds = timeline_->seconds();
  const auto time_of = [&](const Instant& instant) {
    return device_origin_ + from_seconds(seconds[static_cast<std::size_t>(instant.device)]);
  };
  for (std::size_t i = attached_at_; i < events_.size(); ++i) {
    // Both instants have marks: they were taken while the timeline was attached.
    events_[i].device = Times{time_of(events_[i].begin), time_of(events_[i].end)};
  }
  timeline_.reset();
}

Trace::Instant Trace::now() {
  return {Clock::now(), timeline_ == nullptr ? -1 : timeline_->mark()};
}

void Trace::add(std::string_view part, std::string_view detail, const Instant& begin,
                const Instant& end) {
  events_.push_back({name_of(part, detail), std::string(part), begin, end, std::nullopt});
}

void Span::name_range() {
  trace_->ranges()->push(name_of(part_, detail_));
  named_ = true;
}

// Spans are recorded at their ends, so the earliest need not come first.
Trace::Clock::time_point Trace::origin() const {
  Clock::time_point origin = Clock::time_point::max();
  for (const Event& event : events_) {
    origin = std::min(origin, event.begin.host);
    if (event.device) origin = std::min(origin, event.device->begin);
  }
  return origin;
}

std::string Trace::to_json() const {
  Json events = Json::array();
  events.push_back(naming("process_name", rank_, kHost, "fettle-trainer " + std::to_string(rank_)));
  const bool two_rows =
      std::any_of(events_.begin(), events_.end(), [](const Event& e) { return e.device; });
  if (two_rows) {
    events.push_back(naming("thread_name", rank_, kHost, "host"));
    events.push_back(naming("thread_name", rank_, kDevice, "device"));
  }
  const Clock::time_point start = origin();
  const auto add_row = [&](const Event& event, const Times& times, std::int64_t row) {
    events.push_back(Json::object({{"name", event.name},
                                   {"cat", event.category},
                                   {"ph", "X"},  // a complete event: "ts" and "dur" in us
                                   {"ts", microseconds(times.begin - start)},
                                   {"dur", microseconds(times.end - times.begin)},
                                   {"pid", rank_},
                                   {"tid", row}}));
  };
  for (const Event& event : events_) {
    add_row(event, {event.begin.host, event.end.host}, kHost);
    if (event.device) add_row(event, *event.device, kDevice);
  }
  return Json::object({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}).dump();
}

Status Trace::write(const std::string& path) const { return write_file(path, to_json()); }

}  // namespace fettle::trainer
