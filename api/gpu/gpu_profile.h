// GpuProfile: one way in which a cluster gives out GPUs, as its administrator describes it.
//
// The administrator's list is in order of preference. A profile states its offers (whole GPUs,
// shares, amounts of memory), how a pod's share is enforced, and the fields to put on a pod to get
// it. Values in `put` may hold slots (gpu_slots.h), which take the numbers of a request; no text
// that a user writes is spliced into them. Profiles from read_gpu_profiles() are valid. Value
// types: safe to share while no thread changes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/fields/field_errors.h"
#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::api {

enum class GpuSharing {
  kWhole,        // a card for each request
  kMig,          // partitions of the hardware
  kMps,          // NVIDIA's device plugin with sharing.mps
  kTimeSlicing,  // NVIDIA's device plugin with sharing.timeSlicing
  kDra,          // dynamic resource allocation: a ResourceClaim
  kKai,          // KAI-Scheduler, Run:ai
  kHami,         // HAMi
  kVolcano,      // Volcano's vGPU
  kOther,        // any other vendor's resource
};
EnumNames<GpuSharing> names_of(GpuSharing /*any*/);

// Which limit on a pod's share is enforced, in ascending order of strength.
enum class GpuEnforcement { kNothing, kMemory, kHardware };
EnumNames<GpuEnforcement> names_of(GpuEnforcement /*any*/);

// Parts of one card: multiples of `step`, from one step up to `max`.
struct GpuFractions {
  double step = 1;
  std::optional<double> max;  // absent: the largest below 1
  bool operator==(const GpuFractions&) const = default;
};

// Memory of one card in bytes: multiples of `step`, from one step up to `max`.
struct GpuMemories {
  double step = 1;
  std::optional<double> max;  // absent: the memory of a card
  bool operator==(const GpuMemories&) const = default;
};

// Has at least one of the three.
struct GpuOffers {
  std::optional<std::int64_t> count;  // whole GPUs of one worker at most
  std::optional<GpuFractions> fraction;
  std::optional<GpuMemories> memory;
  bool operator==(const GpuOffers&) const = default;
};

struct GpuPut {
  Json limits;  // of the trial's container: resource to a whole number, or a text with slots
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::map<std::string, std::string> node_selector;
  std::map<std::string, std::string> env;
  std::vector<Toleration> tolerations;
  std::string scheduler_name;
  std::string runtime_class;
  Json claim;                 // the spec of a ResourceClaim
  bool shared_claim = false;  // one claim for all pods of a Study; else one for each pod
  bool operator==(const GpuPut&) const = default;
};

struct GpuProfile {
  std::string name;
  GpuSharing sharing = GpuSharing::kWhole;
  std::vector<std::string> models;  // of its cards, as in the label nvidia.com/gpu.product
  std::optional<double> memory;     // bytes of one card
  GpuOffers offers;
  GpuEnforcement enforces = GpuEnforcement::kNothing;
  GpuPut put;
  bool operator==(const GpuProfile&) const = default;
};

inline constexpr std::size_t kMostGpuProfiles = 64;

// Whether it offers a single size, such as a MIG slice or one of N replicas, and states both its
// fraction and its memory.
bool is_one_slice(const GpuProfile& profile);
// Return the largest fraction of a card, and the most bytes of one, on offer; absent: none.
std::optional<double> largest_fraction(const GpuProfile& profile);
std::optional<double> largest_memory(const GpuProfile& profile);

// Checks across the fields of the profile at `path` (check_gpu_profile.cpp).
void check_gpu_profile(const GpuProfile& profile, const FieldPath& path, FieldErrors& errors);

// Reads the list. The error has a line for each fault, with the profile's name.
Result<std::vector<GpuProfile>> read_gpu_profiles(const Json& list);
Json write_gpu_profiles(const std::vector<GpuProfile>& profiles);

// The profiles of a cluster whose administrator lists none: whole GPUs of NVIDIA's device plugin.
const std::vector<GpuProfile>& default_gpu_profiles();

}  // namespace fettle::api
