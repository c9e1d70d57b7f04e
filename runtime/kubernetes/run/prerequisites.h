// Prerequisites: creates the objects that the pods of a Job need: headless Services, PodGroups,
// PersistentVolumeClaims and ResourceClaims.
//
// None of them is watched. Each is created, or created again, before a Job and while its run waits;
// a run that trains needs nothing new. An object that was made or found is assumed to exist for a
// minute. One that cannot be made keeps a run waiting, with the reason, but its state remains
// visible.
//
// Thread-safe. Client, Store and clock must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "api/study/study.h"
#include "base/json.h"
#include "base/result.h"
#include "core/control/clock.h"
#include "core/control/store.h"
#include "kube/client/client.h"
#include "kube/objects/objects.h"
#include "runtime/kubernetes/gpu/placement.h"

namespace fettle::kubernetes {

class Prerequisites {
 public:
  Prerequisites(kube::Client& client, control::Store& store, control::Clock& clock)
      : client_(client), store_(store), clock_(clock) {}

  // All objects that must exist before a Job of the Study.
  Status ensure_for_study(const api::Study& study, const std::optional<GpuPlacement>& gpus);
  Status ensure_volume_claim(const api::Study& study);
  Status ensure_resource_claim(const api::Study& study, const GpuPlacement& gpus);
  // The Service that the Job names; a Job that an earlier version made has one of its own.
  Status ensure_service_of(const kube::Job& job, const api::Study& study);
  // The PodGroup in the newest version that the cluster serves.
  Status ensure_pod_group(const kube::Job& job);

  // Whether the Job's Service and PodGroup are known to exist.
  bool are_known(const kube::Job& job) const;
  // Call when the owner of objects, a Job, is gone.
  void forget(const std::string& uid);

 private:
  Status ensure_service(const api::Study& study);
  Status ensure(const kube::Resource& resource, const std::string& ns, const std::string& key,
                const std::function<Json()>& build, bool* made_again = nullptr);
  bool exists(const kube::Resource& resource, const std::string& ns, const Json& object);

  kube::Client& client_;
  control::Store& store_;
  control::Clock& clock_;
  mutable std::mutex mutex_;
  // Until when an object is assumed to exist: by its owner's uid and a name or resource, or, a
  // Service, by its namespace and name. Guarded by mutex_.
  std::map<std::string, std::int64_t> ensured_until_;
};

}  // namespace fettle::kubernetes
