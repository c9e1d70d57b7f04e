// TorchModule: the source of a Python module with the network as a torch.nn.Module, whose
// state_dict has the names and shapes of named_weights.h. It takes samples as the data files have
// them. Pure; usable from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/files/export.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

// `weights`: the name of the safetensors file, which lies beside the module. Errors: as
// graph_of().
Result<std::string> torch_module(const SavedModel& model, const ExportOrigin& origin,
                                 const std::string& weights);

}  // namespace fettle::trainer
