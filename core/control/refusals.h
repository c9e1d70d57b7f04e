// Refusals: which objects are refused repeatedly for the same reason, and which Studies that blocks
// (the condition Blocked).
//
// A refusal is the error of a reconcile. Refusals of one object in a row count as the same while
// they are alike: the same code and the same message apart from digits, which are counts and
// times. A reconcile that succeeds ends the row. A conflict means that the object has changed,
// and that the next reconcile plans with the new one; only conflicts that do not end block. Only
// a cache: it fills again after a restart. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/conditions.h"
#include "core/control/work_queue.h"

namespace fettle::control {

// An object is blocked after this number of refusals in a row, over at least this time, so that the
// restart of a server, for example, is not reported.
inline constexpr int kBlockedAfter = 3;
inline constexpr std::int64_t kBlockedAfterMs = 1'000;
inline constexpr std::int64_t kBlockedByConflictsMs = 30'000;

using core::same_reason;

class Refusals {
 public:
  // One more refusal of `item`, which belongs to `study`. Returns how many this makes in a row; 0
  // for conflicts that may still end.
  int add(const Item& item, const Key& study, const Error& error, std::int64_t now_ms);
  // The item was reconciled without an error. Returns the Study that it had blocked, if any.
  std::optional<Key> remove(const Item& item);
  // Counts the refusal just added as an error that no retry cures. Returns how many such errors
  // there were since the item was last reconciled, whatever their reasons.
  int count_failure(const Item& item);

  // The message of the refusal that blocks the Study or one of its trials now, the first one by
  // kind and name; "" if nothing is blocked.
  std::string of_study(const Key& study) const;
  bool is_blocked(const Item& item) const;
  // Objects that are blocked now.
  std::size_t blocked() const;

 private:
  struct Row {
    Key study;
    ErrorCode code = ErrorCode::kInvalid;
    std::string words;  // of the newest refusal
    std::int64_t since_ms = 0;
    int count = 0;
    bool blocked = false;
    int failures = 0;  // see count_failure()
  };

  mutable std::mutex mutex_;
  std::map<Item, Row> rows_;
};

}  // namespace fettle::control
