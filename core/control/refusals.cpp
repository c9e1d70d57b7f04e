#include "core/control/refusals.h"

#include <algorithm>

namespace fettle::control {

int Refusals::add(const Item& item, const Key& study, const Error& error, std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  Row& row = rows_[item];
  const bool alike =
      row.count > 0 && row.code == error.code && same_reason(row.words, error.message);
  if (!alike) {  // a new row, which keeps its count of failures
    row = {.study = study,
           .code = error.code,
           .words = {},
           .since_ms = now_ms,
           .failures = row.failures};
  }
  row.words = error.message;
  ++row.count;
  const bool conflicts = error.code == ErrorCode::kConflict;
  const std::int64_t after_ms = conflicts ? kBlockedByConflictsMs : kBlockedAfterMs;
  row.blocked = row.count >= kBlockedAfter && now_ms - row.since_ms >= after_ms;
  return conflicts && !row.blocked ? 0 : row.count;
}

int Refusals::count_failure(const Item& item) {
  const std::lock_guard lock(mutex_);
  return ++rows_[item].failures;
}

std::optional<Key> Refusals::remove(const Item& item) {
  const std::lock_guard lock(mutex_);
  const auto row = rows_.extract(item);
  if (row.empty() || !row.mapped().blocked) return std::nullopt;
  return row.mapped().study;
}

std::string Refusals::of_study(const Key& study) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [item, row] : rows_) {
    if (row.blocked && row.study == study) return row.words;
  }
  return "";
}

bool Refusals::is_blocked(const Item& item) const {
  const std::lock_guard lock(mutex_);
  const auto row = rows_.find(item);
  return row != rows_.end() && row->second.blocked;
}

std::size_t Refusals::blocked() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(rows_, [](const auto& entry) { return entry.second.blocked; }));
}

}  // namespace fettle::control
