// Int8Model: the 8-bit network that a trial has validated (training.quantize), out of its
// checkpoint: batch norms folded, weights on their grids, ranges of the inputs. The ONNX of such a
// model computes with 8-bit integers. Pure; usable from any thread.
#pragma once

#include "base/result.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

// Errors: the checkpoint has no ranges, because the training makes no 8-bit network, or not at that
// epoch.
Result<SavedModel> int8_model(const SavedModel& model);

// Whether the model is such a network.
bool is_int8(const SavedModel& model);

}  // namespace fettle::trainer
