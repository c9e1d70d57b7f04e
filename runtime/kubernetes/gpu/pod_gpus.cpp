#include "runtime/kubernetes/gpu/pod_gpus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "api/fields/field_writer.h"
#include "api/study/study_fields.h"
#include "base/check.h"
#include "core/names.h"
#include "kube/objects/json_path.h"
#include "kube/objects/json_write.h"

namespace fettle::kubernetes {
namespace {

using kube::append;
using kube::map_of;
using kube::text_at;

constexpr const char* kClaimInPod = "fettle-gpu";
constexpr const char* kGraceField = "terminationGracePeriodSeconds";
constexpr std::string_view kNvidiaGpu = "nvidia.com/gpu";
// Enough of the uid to tell a Study from an earlier one of its name.
constexpr std::size_t kUidPart = 8;

// A hash that differs for our different texts, all but certainly (FNV-1a, 32 bits).
std::string short_hash(std::string_view text) {
  constexpr std::uint32_t kBasis = 2'166'136'261U;
  constexpr std::uint32_t kPrime = 16'777'619U;
  std::uint32_t hash = kBasis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  std::array<char, 8> digits{};
  constexpr int kHex = 16;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), hash, kHex);
  return {digits.data(), end.ptr};
}

Error contradiction(const std::string& field, std::string_view found, const GpuPlacement& placement,
                    const std::string& needed) {
  return invalid("spec.trial.template.spec." + field + ": found " + std::string(found) +
                 ", and GPU profile " + placement.profile + " needs " + needed +
                 ": remove it from the template, or choose other GPUs in spec.trial.gpu");
}

Status add_limits(const GpuPlacement& placement, Json& container) {
  Json& limits = map_of(map_of(container, "resources"), "limits");
  // If the profile itself sets nvidia.com/gpu, the resource stands for shares, not whole GPUs.
  if (placement.is_share() && placement.limits.count(std::string(kNvidiaGpu)) == 0 &&
      limits.find(kNvidiaGpu) != nullptr) {
    return contradiction("containers[].resources.limits", "nvidia.com/gpu", placement,
                         "that no whole GPU is asked for beside the share");
  }
  for (const auto& [resource, amount] : placement.limits) {
    if (limits.find(resource) == nullptr) limits.set(resource, amount);
  }
  return success();
}

void add_missing(const std::map<std::string, std::string>& texts, Json& object,
                 std::string_view key) {
  if (texts.empty()) return;
  Json& map = map_of(object, key);
  for (const auto& [name, text] : texts) {
    if (map.find(name) == nullptr) map.set(name, text);
  }
}

// Keeps the template's own entries, too: labels and queues are the user's.
void add_metadata(const GpuPlacement& placement, Json& pod_template) {
  Json& metadata = map_of(pod_template, "metadata");
  add_missing(placement.labels, metadata, "labels");
  if (placement.annotations.empty()) return;
  Json& annotations = map_of(metadata, "annotations");
  for (const auto& [name, text] : placement.annotations) annotations.set(name, text);
}

Status add_scheduling(const GpuPlacement& placement, Json& spec) {
  const std::string scheduler = text_at(spec, {"schedulerName"});
  if (!placement.scheduler.empty()) {
    if (!scheduler.empty() && scheduler != placement.scheduler) {
      return contradiction("schedulerName", scheduler, placement, placement.scheduler);
    }
    spec.set("schedulerName", placement.scheduler);
  }
  if (!placement.node_selector.empty()) {
    Json& selector = map_of(spec, "nodeSelector");
    for (const auto& [label, value] : placement.node_selector) {
      const std::string found = text_at(selector, {label});
      if (!found.empty() && found != value) {
        return contradiction("nodeSelector", label + "=" + found, placement, value);
      }
      selector.set(label, value);
    }
  }
  for (const api::Toleration& toleration : placement.tolerations) {
    append(spec, "tolerations", api::write_struct(toleration));
  }
  if (!placement.runtime_class.empty() && spec.find("runtimeClassName") == nullptr) {
    spec.set("runtimeClassName", placement.runtime_class);
  }
  return success();
}

// The variables with which a process keeps to its part by itself, whatever the cards enforce.
std::map<std::string, std::string> env_of(const GpuPlacement& placement) {
  std::map<std::string, std::string> env = placement.env;
  if (!placement.is_share()) return env;
  // In MiB.
  if (placement.memory) env.emplace("FETTLE_GPU_MEMORY", std::to_string(*placement.memory >> 20));
  if (placement.sharing == api::GpuSharing::kMps) {
    // The value may be below the daemon's limit, never above.
    const auto percent = std::max<std::int64_t>(1, std::llround(placement.gpus * 100));
    env.emplace("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::to_string(percent));
  }
  return env;
}

void add_env(const GpuPlacement& placement, Json& container) {
  const Json::Array known = kube::array_at(container, {"env"});  // a copy: append() changes it
  const auto is_set = [&](const std::string& name) {
    return std::ranges::any_of(
        known, [&](const Json& variable) { return text_at(variable, {"name"}) == name; });
  };
  for (const auto& [name, text] : env_of(placement)) {
    if (is_set(name)) continue;
    append(container, "env", Json::object({{"name", name}, {"value", text}}));
  }
}

void add_claim(const GpuPlacement& placement, const api::Study& study, Json& spec,
               Json& container) {
  const char* const kind =
      placement.shared_claim ? "resourceClaimName" : "resourceClaimTemplateName";
  append(spec, "resourceClaims",
         Json::object({{"name", kClaimInPod}, {kind, gpu_claim_name(study, placement)}}));
  append(map_of(container, "resources"), "claims", Json::object({{"name", kClaimInPod}}));
}

// Raises the grace period if it is too short for neighbours on the card.
void add_grace(const GpuPlacement& placement, Json& spec) {
  const auto least = static_cast<std::int64_t>(std::ceil(placement.least_grace));
  const Json* const found = spec.find(kGraceField);
  const bool enough = found != nullptr && found->is_integer() && found->as_integer() >= least;
  if (least > 0 && !enough) spec.set(kGraceField, least);
}

}  // namespace

Status apply(const GpuPlacement& placement, const api::Study& study, Json& pod_template,
             Json& container) {
  Json& spec = *pod_template.find("spec");
  FETTLE_TRY(add_scheduling(placement, spec));
  FETTLE_TRY(add_limits(placement, container));
  add_metadata(placement, pod_template);
  add_env(placement, container);
  add_grace(placement, spec);
  if (!placement.claim.is_null()) add_claim(placement, study, spec, container);
  return success();
}

std::string gpu_claim_name(const api::Study& study, const GpuPlacement& placement) {
  return study.metadata.name + "-gpu-" + study.metadata.uid.substr(0, kUidPart) + "-" +
         short_hash(placement.claim.dump());
}

const kube::Resource& gpu_claim_resource(const GpuPlacement& placement) {
  return placement.shared_claim ? kube::kResourceClaims : kube::kResourceClaimTemplates;
}

Json build_gpu_claim(const api::Study& study, const GpuPlacement& placement) {
  CHECK(!placement.claim.is_null(), "there is no claim to make");
  const Json labels = Json::object({{core::kStudyLabel, study.metadata.name}});
  Json spec = placement.claim;
  if (!placement.shared_claim) {
    spec = Json::object({{"metadata", Json::object({{"labels", labels}})}, {"spec", spec}});
  }
  return kube::owned_object(gpu_claim_resource(placement), gpu_claim_name(study, placement), labels,
                            kube::kStudies, study.metadata, std::move(spec));
}

}  // namespace fettle::kubernetes
