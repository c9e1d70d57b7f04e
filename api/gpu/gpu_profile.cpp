#include "api/gpu/gpu_profile.h"

#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "api/fields/field_reader.h"
#include "api/fields/field_writer.h"
#include "api/study/study_fields.h"

namespace fettle::api {
namespace {

constexpr std::array<EnumName<GpuSharing>, 9> kGpuSharings{{
    {GpuSharing::kWhole, "Whole"},
    {GpuSharing::kMig, "MIG"},
    {GpuSharing::kMps, "MPS"},
    {GpuSharing::kTimeSlicing, "TimeSlicing"},
    {GpuSharing::kDra, "DRA"},
    {GpuSharing::kKai, "KAI"},
    {GpuSharing::kHami, "HAMi"},
    {GpuSharing::kVolcano, "Volcano"},
    {GpuSharing::kOther, "Other"},
}};
constexpr std::array<EnumName<GpuEnforcement>, 3> kGpuEnforcements{{
    {GpuEnforcement::kNothing, "Nothing"},
    {GpuEnforcement::kMemory, "Memory"},
    {GpuEnforcement::kHardware, "Hardware"},
}};

constexpr std::size_t kMostGpuModels = 16;
constexpr std::size_t kMostPutEntries = 16;     // of each map
constexpr std::size_t kLongestPutText = 1'024;  // bytes
constexpr double kMostGpuMemory = 1e15;         // bytes
constexpr double kNoise = 1e-9;                 // of multiples of a step

FieldRules put_texts() { return list(0, kMostPutEntries).of_text(kLongestPutText); }
FieldRules bytes_of_card() { return above(0, kMostGpuMemory).as(Form::kQuantity); }

double largest_multiple(double step, double limit) {
  return std::floor(limit / step + kNoise) * step;
}

// Returns "mig-20g" if the item has a name, else its place in the list.
std::string called(const Json& item, std::size_t index) {
  const Json* const name = item.is_object() ? item.find("name") : nullptr;
  const bool named = name != nullptr && name->is_string() && !name->as_string().empty();
  return named ? clean_text(name->as_string(), kLongestName)
               : "number " + std::to_string(index + 1);
}

}  // namespace

EnumNames<GpuSharing> names_of(GpuSharing /*any*/) { return kGpuSharings; }
EnumNames<GpuEnforcement> names_of(GpuEnforcement /*any*/) { return kGpuEnforcements; }

template <class Visitor, Like<GpuFractions> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Multiples of this part of a card.", above(0, 1).needed());
  v.field("max", c.max, "At most this part; left out: the largest below 1.", above(0, 1));
}

template <class Visitor, Like<GpuMemories> T>
void visit_fields(Visitor& v, T& c) {
  v.field("step", c.step, "Multiples of this much memory.", bytes_of_card().needed());
  v.field("max", c.max, "At most this much; left out: all of a card.", bytes_of_card());
}

template <class Visitor, Like<GpuOffers> T>
void visit_fields(Visitor& v, T& c) {
  v.field("count", c.count, "The most whole GPUs of one worker.", whole(1, 64));
  v.field("fraction", c.fraction, "Parts of one card.");
  v.field("memory", c.memory, "Memory of one card.");
}

template <class Visitor, Like<GpuPut> T>
void visit_fields(Visitor& v, T& c) {
  v.field("limits", c.limits, "Limits of the trial's container.", FieldRules{}.as(Form::kObject));
  v.field("labels", c.labels, "Labels of the pod.", put_texts().by_label());
  v.field("annotations", c.annotations, "Annotations of the pod.", put_texts().by_label());
  v.field("nodeSelector", c.node_selector, "Labels that a node must have.", put_texts().by_label());
  v.field("env", c.env, "Variables of the trial's container.", put_texts());
  v.field("tolerations", c.tolerations, "Taints that do not keep the pods away.",
          list(0, kMostTolerations));
  v.field("schedulerName", c.scheduler_name, "Who schedules the pods.", dns_subdomain());
  v.field("runtimeClassName", c.runtime_class, "Their RuntimeClass.", dns_subdomain());
  v.field("claim", c.claim, "The spec of a ResourceClaim.", FieldRules{}.as(Form::kObject));
  v.field("sharedClaim", c.shared_claim, "One claim for all pods of a Study.");
}

template <class Visitor, Like<GpuProfile> T>
void visit_fields(Visitor& v, T& c) {
  v.field("name", c.name, "A name, unique in the list.", dns_label().needed());
  v.field("sharing", c.sharing, "How cards are shared.", FieldRules{}.needed());
  v.field("models", c.models, "What its cards are called.",
          list(0, kMostGpuModels).of_text(kLongestLabelName).as(Form::kLabelValue));
  v.field("memory", c.memory, "Memory of one card.", bytes_of_card());
  v.field("offers", c.offers, "What can be asked for.", FieldRules{}.needed());
  v.field("enforces", c.enforces, "What keeps a pod to its share.", FieldRules{}.needed());
  v.field("put", c.put, "What a pod gets.", FieldRules{}.needed());
}

bool is_one_slice(const GpuProfile& profile) {
  const auto& [count, fraction, memory] = profile.offers;
  if (!fraction || !memory) return false;
  return fraction->max == fraction->step && memory->max == memory->step;
}

std::optional<double> largest_fraction(const GpuProfile& profile) {
  const auto& offer = profile.offers.fraction;
  if (!offer) return std::nullopt;
  // Below 1 by more than the tolerance of largest_multiple(), to exclude 1 itself.
  return largest_multiple(offer->step, offer->max.value_or(1 - 2 * kNoise));
}

std::optional<double> largest_memory(const GpuProfile& profile) {
  const auto& offer = profile.offers.memory;
  if (offer) {
    const std::optional<double> limit = offer->max ? offer->max : profile.memory;
    return limit ? std::optional(largest_multiple(offer->step, *limit)) : std::nullopt;
  }
  if (!profile.offers.fraction || !profile.memory) return std::nullopt;
  return *profile.memory * *largest_fraction(profile);
}

Result<std::vector<GpuProfile>> read_gpu_profiles(const Json& list) {
  if (!list.is_array()) {
    return invalid("gpuProfiles: found " + describe(list) + ", expected a list of profiles");
  }
  const Json::Array& items = list.as_array();
  if (items.size() > kMostGpuProfiles) {
    return invalid("gpuProfiles: found " + std::to_string(items.size()) +
                   " profiles, expected at most " + std::to_string(kMostGpuProfiles));
  }
  std::vector<GpuProfile> profiles;
  std::set<std::string> names;
  std::string wrong;
  for (std::size_t i = 0; i < items.size(); ++i) {
    GpuProfile& profile = profiles.emplace_back();
    FieldErrors errors;
    read_struct(items[i], FieldPath(), profile, errors);
    if (errors.empty()) check_gpu_profile(profile, FieldPath(), errors);
    if (!profile.name.empty() && !names.insert(profile.name).second) {
      errors.add("name", "an earlier profile has the same; expected a different name each");
    }
    for (const FieldError& error : std::move(errors).take()) {
      wrong += (wrong.empty() ? "" : "\n") + ("GPU profile " + called(items[i], i) + ": ") +
               to_string({error});
    }
  }
  if (!wrong.empty()) return invalid(wrong);
  return profiles;
}

Json write_gpu_profiles(const std::vector<GpuProfile>& profiles) {
  return Json::array_of(profiles, write_struct<GpuProfile>);
}

const std::vector<GpuProfile>& default_gpu_profiles() {
  static const std::vector<GpuProfile> kProfiles = [] {
    GpuProfile whole;
    whole.name = "whole";
    whole.offers.count = 64;  // the most that a Study can request
    whole.enforces = GpuEnforcement::kHardware;
    whole.put.limits = Json::object({{"nvidia.com/gpu", "{count}"}});
    return std::vector<GpuProfile>{whole};
  }();
  return kProfiles;
}

}  // namespace fettle::api
