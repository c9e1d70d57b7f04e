// CheckBackOff: limits how often the template check of a Study without trials is repeated after a
// refusal. A check is a dry run of several objects, and a Study is reconciled for many reasons: the
// refusal stands between two checks. A changed spec is checked at once.
//
// The interval begins with the time after which a refusal blocks (refusals.h) and doubles up to
// kMaxCheckMs, which is less than a resync, so each resync still asks. Not synchronised.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/result.h"
#include "core/control/refusals.h"
#include "core/study/ledger.h"

namespace fettle::control {

inline constexpr std::int64_t kMinCheckMs = kBlockedAfterMs;
inline constexpr std::int64_t kMaxCheckMs = 20'000;

class CheckBackOff {
 public:
  // The refusal that still stands; absent: ask.
  std::optional<Error> standing(const core::StudyVersion& study, std::int64_t now_ms) const {
    if (!refused_ || refused_->study != study || now_ms >= refused_->until_ms) return std::nullopt;
    return refused_->error;
  }

  void note(const core::StudyVersion& study, const Status& answer, std::int64_t now_ms) {
    if (answer.ok()) return refused_.reset();
    const bool again = refused_ && refused_->study == study;
    const std::int64_t wait_ms = again ? std::min(2 * refused_->wait_ms, kMaxCheckMs) : kMinCheckMs;
    refused_ = Refused{study, answer.error(), wait_ms, now_ms + wait_ms};
  }

 private:
  struct Refused {
    core::StudyVersion study;
    Error error;
    std::int64_t wait_ms = 0;
    std::int64_t until_ms = 0;
  };
  std::optional<Refused> refused_;
};

}  // namespace fettle::control
