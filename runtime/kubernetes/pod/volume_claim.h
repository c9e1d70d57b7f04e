// The PersistentVolumeClaim of a Study's checkpoints: either the user's, which stays, or one
// created for the Study, which owns it, so that the garbage collector removes it with the Study.
// Pure; usable from any thread.
#pragma once

#include <string>

#include "api/study/study.h"
#include "base/json.h"

namespace fettle::kubernetes {

// The claim's name; "" = checkpoints are deleted with their pod.
std::string volume_claim_of(const api::Study& study);

// Whether a claim is created for the Study.
bool makes_volume_claim(const api::Study& study);

// The claim to create. Requires makes_volume_claim(study).
Json build_volume_claim(const api::Study& study);

}  // namespace fettle::kubernetes
