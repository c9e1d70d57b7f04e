#include "operator/policies.h"

namespace fettle::op {

namespace {

// helm/fettle/templates/admission-policies.yaml; a policy and its binding have the same name.
constexpr const char* kNames[] = {"fettle-study", "fettle-trial", "fettle-report"};
constexpr kube::Resource kPolicies{"admissionregistration.k8s.io", "v1",
                                   "validatingadmissionpolicies", "ValidatingAdmissionPolicy"};
constexpr kube::Resource kBindings{"admissionregistration.k8s.io", "v1",
                                   "validatingadmissionpolicybindings",
                                   "ValidatingAdmissionPolicyBinding"};

}  // namespace

Result<std::vector<std::string>> missing_policies(kube::Client& client) {
  std::vector<std::string> missing;
  for (const char* name : kNames) {
    for (const kube::Resource& resource : {kPolicies, kBindings}) {
      const Result<Json> found = client.get(resource, {"", name});
      if (found.ok()) continue;
      if (found.error().code != ErrorCode::kNotFound) return found.error();
      missing.emplace_back(name);
      break;
    }
  }
  return missing;
}

}  // namespace fettle::op
