// Resources: the kinds of objects that Fettle uses, and their paths at the API server. Values and
// pure functions; usable from any thread.
#pragma once

#include <compare>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace fettle::kube {

// The key of one object of a resource; `ns` is "" for objects without a namespace.
struct ObjectKey {
  std::string ns;
  std::string name;
  auto operator<=>(const ObjectKey&) const = default;
};

struct Resource {
  std::string_view group;  // "" = core
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
};

inline constexpr Resource kStudies{"fettle.dev", "v1alpha1", "studies", "Study"};
inline constexpr Resource kTrials{"fettle.dev", "v1alpha1", "trials", "Trial"};
inline constexpr Resource kJobs{"batch", "v1", "jobs", "Job"};
inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
inline constexpr Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims",
                                          "ResourceClaim"};
inline constexpr Resource kResourceClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                                  "ResourceClaimTemplate"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events", "Event"};

// "batch/v1", or "v1" for the core group.
std::string api_version(const Resource& resource);

// Returns "/apis/batch/v1/namespaces/team/jobs/digits-0-r0/status". Empty `ns`: all namespaces;
// empty `name`: the collection. Escapes names.
std::string path_of(const Resource& resource, std::string_view ns, std::string_view name = "",
                    std::string_view subresource = "");

// "Job team/digits-0-r0", for messages.
std::string describe(const Resource& resource, const ObjectKey& key);

// Escapes `text` for a path or a query: everything except letters, digits and -._~ becomes %XX.
std::string escape(std::string_view text);

// Returns "?a=b&c=d" from pairs with a value that is not empty; escapes values.
std::string query_of(
    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters);

// The server's resourceVersions are decimal numbers that grow within a resource (comparable since
// Kubernetes 1.35). "" and anything that is no such number is older than everything.
bool is_newer(std::string_view version, std::string_view than);

}  // namespace fettle::kube
