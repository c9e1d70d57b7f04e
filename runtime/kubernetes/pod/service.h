// The headless Service through which the workers of a Study's trials find each other.
//
// One Service serves all runs of a Study: it selects the Study's pods, and its names resolve to
// single pods, "<job>-<rank>.<service>". The Study owns it. Runs that an earlier version started
// have a Service each, owned by their Job, until they end. Pure; usable from any thread.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/json.h"
#include "kube/objects/objects.h"

namespace fettle::kubernetes {

// Annotation of a Job whose workers find each other through a headless Service: the Service's name.
inline constexpr const char* kServiceAnnotation = "fettle.dev/service";
inline constexpr int kRendezvousPort = 29500;

// The name of the Study's Service: a DNS label that holds a part of the Study's uid, so that a
// later Study of the same name has another one.
std::string service_of(const api::Study& study);
Json build_service(const api::Study& study);

// The name of the Service that the workers of `job` look for; "" = it has one worker.
std::string service_of(const kube::Job& job);
// For a Job that an earlier version made.
bool has_own_service(const kube::Job& job);
Json build_own_service(const kube::Job& job);

}  // namespace fettle::kubernetes
