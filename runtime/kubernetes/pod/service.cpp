#include "runtime/kubernetes/pod/service.h"

#include <utility>

#include "core/names.h"
#include "kube/objects/json_write.h"
#include "kube/objects/labels.h"
#include "runtime/kubernetes/pod/labels.h"

namespace fettle::kubernetes {
namespace {

// The name of a Service may not start with a digit before Kubernetes 1.36, and a Study's may.
constexpr const char* kPrefix = "w-";
constexpr std::size_t kUidPart = 8;
constexpr std::size_t kLongestLabel = 63;

Json headless_spec(Json selector) {
  const Json port = Json::object({{"name", "rendezvous"}, {"port", kRendezvousPort}});
  // Workers become ready by finding each other, so names must resolve before they are ready.
  return Json::object({{"clusterIP", "None"},
                       {"publishNotReadyAddresses", true},
                       {"selector", std::move(selector)},
                       {"ports", Json::Array{port}}});
}

}  // namespace

std::string service_of(const api::Study& study) {
  const std::string uid = "-" + study.metadata.uid.substr(0, kUidPart);
  const std::size_t room = kLongestLabel - std::string(kPrefix).size() - uid.size();
  return kPrefix + study.metadata.name.substr(0, room) + uid;
}

Json build_service(const api::Study& study) {
  const Json labels = Json::object({{core::kStudyLabel, study.metadata.name}});
  return kube::owned_object(kube::kServices, service_of(study), labels, kube::kStudies,
                            study.metadata, headless_spec(labels));
}

// The value "true" marks a Job of an early version, whose Service has the Job's name.
std::string service_of(const kube::Job& job) {
  const std::string named = kube::text_in(job.metadata.annotations, kServiceAnnotation);
  return named == "true" ? job.metadata.name : named;
}

bool has_own_service(const kube::Job& job) {
  const std::string name = service_of(job);
  return name == job.metadata.name || name == kPrefix + job.metadata.name;
}

Json build_own_service(const kube::Job& job) {
  Json selector = Json::object({{"batch.kubernetes.io/job-name", job.metadata.name}});
  return kube::owned_object(kube::kServices, service_of(job), inherited_labels(job), kube::kJobs,
                            job.metadata, headless_spec(std::move(selector)));
}

}  // namespace fettle::kubernetes
