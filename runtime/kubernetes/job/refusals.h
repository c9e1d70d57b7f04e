// Refusals: remembers runs without a Job, and when to retry them. Either the API server does not
// admit the Job (quota, RBAC, a namespace being deleted), or its workers did not all get a node.
//
// Such a run is reported as Pending with a reason. After its back-off, or, if the API server
// refused it, as soon as another Job of the namespace is gone, it is no longer reported, so the
// controller starts it again. Losing this memory in a restart only causes an earlier retry. Not
// synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "runtime/kubernetes/job/ownership.h"

namespace fettle::kubernetes {

inline constexpr std::int64_t kRetryRefusedMs = 15'000;
// Beyond this number the oldest refusal is dropped, so that its run is retried.
inline constexpr std::size_t kMaxRefusals = 4'096;

class Refusals {
 public:
  void add(const RunName& run, std::int64_t workers, std::string why, std::int64_t now_ms);
  // Like add(), but retried not before `until_ms`, whichever Jobs end before.
  void hold_back(const RunName& run, std::int64_t workers, std::string why, std::int64_t now_ms,
                 std::int64_t until_ms);
  void remove(const RunName& run);
  // The trial's refused runs, as Pending.
  std::vector<core::Run> of_trial(const RunName& trial, std::int64_t now_ms) const;
  // Called when a Job of the namespace is gone: releases the run that was refused first, to be
  // retried.
  std::optional<RunName> release_one(const std::string& ns);

 private:
  struct Refusal {
    std::int64_t workers = 1;
    std::string why;
    std::int64_t since_ms = 0;
    std::int64_t until_ms = 0;
    bool may_be_released = true;
  };
  void insert(const RunName& run, Refusal refusal);

  std::map<RunName, Refusal> refusals_;
};

}  // namespace fettle::kubernetes
