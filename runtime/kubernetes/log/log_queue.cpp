#include "runtime/kubernetes/log/log_queue.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fettle::kubernetes {
namespace {

// Size of the token bucket.
constexpr double kBurstMs = 1'000;

}  // namespace

LogQueue::LogQueue(double calls_per_second, std::size_t readers)
    : ms_per_call_(1'000 / calls_per_second), max_failing_(std::max<std::size_t>(1, readers / 2)) {}

// Drops expired entries when it adds one, which bounds the map.
LogQueue::Served LogQueue::find(std::map<std::string, std::weak_ptr<std::int64_t>>& all,
                                const std::string& name) {
  const auto known = all.find(name);
  if (known != all.end()) {
    if (Served served = known->second.lock()) return served;
  }
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  Served served = std::make_shared<std::int64_t>(0);
  all[name] = served;
  return served;
}

void LogQueue::enqueue(const std::string& id, const std::string& ns, const std::string& study,
                       const Request& request) {
  Entry& entry = entries_[id];
  if (entry.ns == nullptr) {
    entry.ns = find(namespaces_, ns);
    entry.study = find(studies_, ns + '/' + study);
  }
  entry.request = request;
}

void LogQueue::remove(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.request.reset();
  if (!found->second.in_flight) entries_.erase(found);
}

bool LogQueue::is_eligible(const Entry& entry) const {
  return entry.request && !entry.in_flight && (!entry.request->failing || failing_ < max_failing_);
}

std::optional<std::string> LogQueue::take(std::int64_t now_ms) {
  const auto now = static_cast<double>(now_ms);
  if (now < next_call_ms_) return std::nullopt;
  const auto rank = [](const Entry& entry) {
    return std::tuple(*entry.ns, *entry.study, !entry.request->ended, entry.request->due_ms);
  };
  auto best = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (!is_eligible(at->second) || at->second.request->due_ms > now_ms) continue;
    if (best == entries_.end() || rank(at->second) < rank(best->second)) best = at;
  }
  if (best == entries_.end()) return std::nullopt;
  Entry& entry = best->second;
  *entry.ns = *entry.study = ++turn_;  // shared with all logs of the namespace and of the Study
  entry.in_flight = true;
  entry.failing = entry.request->failing;
  failing_ += entry.failing ? 1 : 0;
  entry.request.reset();
  // The token bucket as one time: while it lies behind `now`, calls are left, for kBurstMs at most.
  next_call_ms_ = std::max(next_call_ms_, now - kBurstMs) + ms_per_call_;
  return best->first;
}

void LogQueue::done(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  failing_ -= found->second.failing ? 1 : 0;
  found->second.in_flight = false;
  found->second.failing = false;
  if (!found->second.request) entries_.erase(found);  // else a read was scheduled meanwhile
}

std::optional<std::int64_t> LogQueue::next_ms() const {
  std::optional<std::int64_t> first;
  for (const auto& [id, entry] : entries_) {
    if (is_eligible(entry))
      first = std::min(first.value_or(entry.request->due_ms), entry.request->due_ms);
  }
  if (!first) return std::nullopt;
  return std::max(*first, static_cast<std::int64_t>(std::ceil(next_call_ms_)));
}

}  // namespace fettle::kubernetes
