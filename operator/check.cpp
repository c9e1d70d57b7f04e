#include "operator/check.h"

#include <chrono>
#include <thread>

#include "kube/objects/json_path.h"
#include "operator/policies.h"
#include "runtime/kubernetes/gpu/catalogue.h"

namespace fettle::op {

namespace {

using std::chrono::milliseconds;

// Watching the Lease change shows that a leader renews it, without comparing clocks.
Status check_leader(kube::Client& client, const Options& options, const std::string& home,
                    Log& log) {
  const kube::ObjectKey key{options.lease_namespace.empty() ? home : options.lease_namespace,
                            options.lease_name};
  FETTLE_ASSIGN(const Json first, client.get(kube::kLeases, key));
  const std::string version = kube::text_at(first, {"metadata", "resourceVersion"});
  constexpr milliseconds kPause{500};
  for (milliseconds waited{0}; waited < options.lease_times.lease; waited += kPause) {
    std::this_thread::sleep_for(kPause);
    FETTLE_ASSIGN(const Json lease, client.get(kube::kLeases, key));
    const std::string holder = kube::text_at(lease, {"spec", "holderIdentity"});
    // A leader that shuts down changes the Lease, too, and leaves no holder.
    if (!holder.empty() && kube::text_at(lease, {"metadata", "resourceVersion"}) != version) {
      log.info("an operator leads", {{"holder", holder}});
      return success();
    }
  }
  return io_error("no replica renews " + kube::describe(kube::kLeases, key) +
                  ": no operator leads; see the log of its pods");
}

Status check_studies(kube::Client& client, const std::string& ns, Log& log) {
  FETTLE_ASSIGN(const std::vector<Json> studies, client.list(kube::kStudies, ns));
  log.info("Studies can be seen",
           {{"namespace", ns.empty() ? "all" : ns}, {"studies", std::to_string(studies.size())}});
  return success();
}

Status check_policies(kube::Client& client, Log& log) {
  const auto missing = missing_policies(client);
  // The chart grants this only with admissionPolicies.check.
  if (!missing.ok() && missing.error().code == ErrorCode::kForbidden) {
    log.warning("whether the admission policies are there cannot be seen",
                {{"error", missing.error().message}});
    return success();
  }
  if (!missing.ok()) return missing.error();
  if (!missing->empty()) return not_found("there is no admission policy " + missing->front());
  log.info("the admission policies are there");
  return success();
}

// Studies that ask for GPUs wait while the list is invalid.
Status check_gpu_profiles(const Options& options, Log& log) {
  if (options.gpu_profiles.empty()) return success();
  kubernetes::GpuCatalogue catalogue(options.gpu_profiles);
  FETTLE_ASSIGN(const auto profiles, catalogue.profiles(0));
  log.info("the GPU profiles can be used", {{"profiles", std::to_string(profiles->size())}});
  return success();
}

}  // namespace

Status check_installation(kube::Client& client, const Options& options, const std::string& home,
                          Log& log) {
  if (options.leader_elect) FETTLE_TRY(check_leader(client, options, home, log));
  if (options.namespaces.empty()) FETTLE_TRY(check_studies(client, "", log));
  for (const std::string& ns : options.namespaces) FETTLE_TRY(check_studies(client, ns, log));
  FETTLE_TRY(check_gpu_profiles(options, log));
  return check_policies(client, log);
}

}  // namespace fettle::op
