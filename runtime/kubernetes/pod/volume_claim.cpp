#include "runtime/kubernetes/pod/volume_claim.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "core/names.h"
#include "kube/objects/json_write.h"

namespace fettle::kubernetes {
namespace {

// Enough of the uid to tell a Study from an earlier one of its name.
constexpr std::size_t kUidPart = 8;

}  // namespace

bool makes_volume_claim(const api::Study& study) {
  return study.spec.trial.checkpoints && study.spec.trial.checkpoints->size;
}

std::string volume_claim_of(const api::Study& study) {
  const auto& wanted = study.spec.trial.checkpoints;
  if (!makes_volume_claim(study)) return wanted ? wanted->claim : "";
  return study.metadata.name + "-checkpoints-" + study.metadata.uid.substr(0, kUidPart);
}

Json build_volume_claim(const api::Study& study) {
  const auto& wanted = study.spec.trial.checkpoints;
  CHECK(makes_volume_claim(study), "there is no claim to make");
  const auto bytes = static_cast<std::int64_t>(std::ceil(*wanted->size));
  const Json requests = Json::object({{"storage", std::to_string(bytes)}});
  Json spec = Json::object({{"accessModes", Json::Array{Json(wanted->access_mode)}},
                            {"resources", Json::object({{"requests", requests}})}});
  if (!wanted->storage_class.empty()) spec.set("storageClassName", wanted->storage_class);
  return kube::owned_object(kube::kClaims, volume_claim_of(study),
                            Json::object({{core::kStudyLabel, study.metadata.name}}),
                            kube::kStudies, study.metadata, std::move(spec));
}

}  // namespace fettle::kubernetes
