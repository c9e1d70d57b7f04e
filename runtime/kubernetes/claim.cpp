#include "runtime/kubernetes/claim.h"

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "core/names.h"
#include "kube/resource.h"
#include "runtime/kubernetes/job_builder.h"

namespace fettle::kubernetes {
namespace {

// Enough of the uid to tell a Study from an earlier one of its name.
constexpr std::size_t kUidPart = 8;

}  // namespace

bool makes_claim(const api::Study& study) {
  return study.spec.trial.checkpoints && study.spec.trial.checkpoints->size;
}

std::string claim_of(const api::Study& study) {
  const auto& wanted = study.spec.trial.checkpoints;
  if (!makes_claim(study)) return wanted ? wanted->claim : "";
  return study.metadata.name + "-checkpoints-" + study.metadata.uid.substr(0, kUidPart);
}

Json build_claim(const api::Study& study) {
  const auto& wanted = study.spec.trial.checkpoints;
  CHECK(makes_claim(study), "there is no claim to make");
  const Json owner =
      owner_reference(kube::api_version(kube::kStudies), kube::kStudies.kind, study.metadata);
  const Json metadata =
      Json::object({{"name", claim_of(study)},
                    {"namespace", study.metadata.ns},
                    {"labels", Json::object({{core::kStudyLabel, study.metadata.name}})},
                    {"ownerReferences", Json(Json::Array{owner})}});
  const auto bytes = static_cast<std::int64_t>(std::ceil(*wanted->size));
  const Json requests = Json::object({{"storage", std::to_string(bytes)}});
  Json spec = Json::object({{"accessModes", Json(Json::Array{Json(wanted->access_mode)})},
                            {"resources", Json::object({{"requests", requests}})}});
  if (!wanted->storage_class.empty()) spec.set("storageClassName", wanted->storage_class);
  return Json::object({{"apiVersion", kube::api_version(kube::kClaims)},
                       {"kind", kube::kClaims.kind},
                       {"metadata", metadata},
                       {"spec", spec}});
}

}  // namespace fettle::kubernetes
