// StartWeights: the weights of a file in place of initial values (model.from).
//
// Every tensor of the network comes from the file, or is named in `new`. Tensors of the file that
// the network lacks are left out, and named in the log.
// Pure but for reading the file; usable from any thread.
#pragma once

#include <string>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/model/network_plan.h"
#include "trainer/model/parameters.h"

namespace fettle::trainer {

// Replaces initial values by the file's. Returns a sentence for the log. Errors name the file, and
// the tensor: a file that is damaged or changed meanwhile; a tensor that is missing or has another
// shape or type; an entry of `new` that the network lacks.
Result<std::string> load_start_weights(const api::StartConfig& start, const NetworkPlan& plan,
                                       InitialValues& values);

}  // namespace fettle::trainer
