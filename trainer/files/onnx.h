// The network as an ONNX model (https://onnx.ai/onnx/repo-docs/IR.html): opset 17 without
// operators of vendors, weights inside. It takes samples as the data files have them and
// normalises them itself; the batch may have any size. Pure; usable from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

// `description`: JSON for the model's metadata, under "fettle". Errors: as graph_of(); more weights
// than one protobuf message holds, which is 2 GiB.
Result<std::string> onnx_model(const SavedModel& model, const std::string& version,
                               const std::string& description);

}  // namespace fettle::trainer
