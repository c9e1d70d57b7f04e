// Placeholders of Katib's templates, ${trialParameters.NAME}, and what stands for them in a Study.
//
// Kubernetes replaces $(FETTLE_PARAM_LR) in the command, the arguments and the variables of the
// trial's container, and nowhere else; so a placeholder of a parameter elsewhere is an error. One
// of metadata that is known beforehand is replaced anywhere. Pure.
#pragma once

#include <map>
#include <string>

#include "base/json.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {

struct Placeholder {
  std::string text;          // what stands for it
  bool is_constant = false;  // the same in all trials
};
using Placeholders = std::map<std::string, Placeholder>;

// Reads trialParameters. `job` is the object that Katib would start.
Placeholders read_placeholders(const Source& trial_template, const Source& job, KatibDraft& draft);

// Replaces the placeholders in a pod template, whose first container is the trial's.
void replace_placeholders(Json& pod_template, const Source& at, const Placeholders& known,
                          KatibDraft& draft);

}  // namespace fettle::cli
