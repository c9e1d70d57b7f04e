// RecentCreations: the objects that this process has just created, by uid and resourceVersion. The
// answer to a creation is as current as a read that was sent at the same time.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "api/meta/metadata.h"

namespace fettle::kubernetes {

class RecentCreations {
 public:
  // How long the answer to a creation counts as a current read: far shorter than the leader's
  // lease, during which no other operator writes.
  static constexpr std::int64_t kTrustMs = 1'000;

  // `asked_ms`: when the creation was sent.
  void note(const api::Metadata& created, std::int64_t asked_ms, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    std::erase_if(asked_ms_, [&](const auto& one) { return one.second + kTrustMs < now_ms; });
    asked_ms_[{created.uid, created.resource_version}] = asked_ms;
  }

  bool has_recent(const api::Metadata& object, std::int64_t now_ms) const {
    const std::lock_guard lock(mutex_);
    const auto found = asked_ms_.find({object.uid, object.resource_version});
    return found != asked_ms_.end() && now_ms <= found->second + kTrustMs;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::int64_t> asked_ms_;
};

}  // namespace fettle::kubernetes
