// Placement: puts a trial's GPU request on one of the cluster's GPU profiles, or refuses it.
//
// A profile fits if it offers exactly the request: a count up to its own, a fraction that is a
// multiple of its step, or at least as much memory. Among the profiles that fit, the one that
// enforces most is chosen; ties go to the administrator's order. The same request and profiles give
// the same placement. Pure functions; usable from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/gpu/gpu_profile.h"
#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kubernetes {

// The request of each worker: exactly one of count, fraction and memory.
struct GpuRequest {
  std::optional<std::int64_t> count;
  std::optional<double> fraction;
  std::optional<double> memory;  // bytes
  std::string model;             // "" = any card
  std::int64_t workers = 1;      // most workers of one trial
  std::int64_t parallelism = 1;  // trials of the Study at once
};

// The additions to the pod of a worker.
struct GpuPlacement {
  std::string profile;  // its name
  api::GpuSharing sharing = api::GpuSharing::kWhole;
  api::GpuEnforcement enforces = api::GpuEnforcement::kNothing;
  std::string why;  // a sentence

  double gpus = 1;                     // of each worker: 2, 0.25
  std::optional<std::int64_t> memory;  // bytes of one card that the worker has; absent: unknown
  double least_grace = 0;              // seconds between SIGTERM and SIGKILL, at least

  std::map<std::string, std::int64_t> limits;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::map<std::string, std::string> env;
  std::vector<api::Toleration> tolerations;
  std::string scheduler;      // "" = the cluster's default
  std::string runtime_class;  // "" = the node's own
  Json claim;                 // the spec of a ResourceClaim; null = none
  bool shared_claim = false;  // one for all pods of the Study; else one for each pod

  bool is_share() const { return gpus < 1; }
  // KAI-Scheduler packs too many on a card when shares come in bulk (KAI-Scheduler#2153), so its
  // pods are given nodes one after the other.
  bool is_paced() const { return is_share() && sharing == api::GpuSharing::kKai; }
  bool operator==(const GpuPlacement&) const = default;
};

struct GpuRefusal {
  std::string reason;               // the request, and why it cannot be met
  std::vector<std::string> offers;  // "fraction 0.25 (profile mps)"; empty: no profile has GPUs

  // Joins both in one message, which names the way out.
  Error error() const;
};

// Absent for a trial on the CPU.
std::optional<GpuRequest> gpu_request(const api::StudySpec& spec);

// `profiles`: in the administrator's order.
std::variant<GpuPlacement, GpuRefusal> place(const GpuRequest& request,
                                             const std::vector<api::GpuProfile>& profiles);

// The placement of a Study's workers; absent on the CPU. kInvalid: refused, in words.
Result<std::optional<GpuPlacement>> place_gpus(const api::StudySpec& spec,
                                               const std::vector<api::GpuProfile>& profiles);

// The most memory of one card, in bytes, that a profile offers to the Study; absent if none offers
// any.
std::optional<double> most_memory(const api::StudySpec& spec,
                                  const std::vector<api::GpuProfile>& profiles);

// The description of the placement in the Study's status.
api::GpuChoice choice_of(const GpuPlacement& placement);

}  // namespace fettle::kubernetes
