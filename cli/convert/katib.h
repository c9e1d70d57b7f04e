// convert_katib(): an Experiment of Katib (kubeflow.org/v1beta1) as a Study.
//
// Nothing is guessed silently: whatever the Study does not carry over, or carries over in another
// form that a reader should look at, is a note (docs/from-katib.md has the table). A document that
// cannot run under Fettle at all has errors. The Study is not validated here. Pure; usable from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/convert/conversion.h"

namespace fettle::cli {

// The text at `key` of a ConfigMap; absent if there is no such ConfigMap or key. Katib keeps
// templates of trials there.
using FindConfigMap =
    std::function<std::optional<std::string>(const std::string& name, const std::string& key)>;

struct KatibOptions {
  // --steps: how many steps a trial takes, which an Experiment does not say. Early stopping needs
  // it.
  std::optional<std::int64_t> steps;
  FindConfigMap config_map = {};  // may be empty
};

Conversion convert_katib(const Json& experiment, const KatibOptions& options);

// Whether the document says that it is an Experiment of Katib, of any version.
bool is_katib_experiment(const Json& document);

}  // namespace fettle::cli
