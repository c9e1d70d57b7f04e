#include "runtime/kubernetes/log_turns.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fettle::kubernetes {
namespace {

// Unused time is saved up for so long.
constexpr double kBurstMs = 1'000;

}  // namespace

LogTurns::LogTurns(double calls_per_second, std::size_t readers)
    : ms_per_call_(1'000 / calls_per_second),
      most_troubled_(std::max<std::size_t>(1, readers / 2)) {}

// Those that nobody holds any more are forgotten when a name is new.
LogTurns::Served LogTurns::find(std::map<std::string, std::weak_ptr<std::int64_t>>& all,
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

void LogTurns::want(const std::string& id, const std::string& ns, const std::string& study,
                    const Wish& wish) {
  Entry& entry = entries_[id];
  if (entry.ns == nullptr) {
    entry.ns = find(namespaces_, ns);
    entry.study = find(studies_, ns + '/' + study);
  }
  entry.wish = wish;
}

void LogTurns::drop(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.wish.reset();
  if (!found->second.under_way) entries_.erase(found);
}

bool LogTurns::may_go(const Entry& entry) const {
  return entry.wish && !entry.under_way && (!entry.wish->troubled || troubled_ < most_troubled_);
}

std::optional<std::string> LogTurns::take(std::int64_t now_ms) {
  const auto now = static_cast<double>(now_ms);
  if (now < next_call_ms_) return std::nullopt;
  const auto rank = [](const Entry& entry) {
    return std::tuple(*entry.ns, *entry.study, !entry.wish->ended, entry.wish->due_ms);
  };
  auto best = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (!may_go(at->second) || at->second.wish->due_ms > now_ms) continue;
    if (best == entries_.end() || rank(at->second) < rank(best->second)) best = at;
  }
  if (best == entries_.end()) return std::nullopt;
  Entry& entry = best->second;
  *entry.ns = *entry.study = ++turn_;
  entry.under_way = true;
  entry.troubled = entry.wish->troubled;
  troubled_ += entry.troubled ? 1 : 0;
  entry.wish.reset();
  next_call_ms_ = std::max(next_call_ms_, now - kBurstMs) + ms_per_call_;
  return best->first;
}

void LogTurns::done(const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  troubled_ -= found->second.troubled ? 1 : 0;
  found->second.under_way = false;
  found->second.troubled = false;
  if (!found->second.wish) entries_.erase(found);
}

std::optional<std::int64_t> LogTurns::next_ms() const {
  std::optional<std::int64_t> first;
  for (const auto& [id, entry] : entries_) {
    if (may_go(entry)) first = std::min(first.value_or(entry.wish->due_ms), entry.wish->due_ms);
  }
  if (!first) return std::nullopt;
  return std::max(*first, static_cast<std::int64_t>(std::ceil(next_call_ms_)));
}

}  // namespace fettle::kubernetes
