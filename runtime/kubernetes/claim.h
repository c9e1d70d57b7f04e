// The claim on which a Study's checkpoints lie: the user's, which stays, or one that is made for
// the Study, belongs to it, and is removed with it by the garbage collector. Pure; usable from any
// thread.
#pragma once

#include <string>

#include "api/study.h"
#include "base/json.h"

namespace fettle::kubernetes {

// Its name; "": checkpoints go with their pod.
std::string claim_of(const api::Study& study);

// Whether one is to be made for the Study.
bool makes_claim(const api::Study& study);

// The PersistentVolumeClaim to make; makes_claim(study) holds.
Json build_claim(const api::Study& study);

}  // namespace fettle::kubernetes
