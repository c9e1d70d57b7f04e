// Reads a file that `fettle export-model --format safetensors` wrote: the network with its weights,
// and the form of its samples.
//
// Trusts nothing in the file: every tensor of the network must be there with its shape, and no
// other. Usable from any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "trainer/data/bytes.h"
#include "trainer/files/saved_model.h"

namespace fettle::trainer {

// Errors name the file (`path`): no safetensors file; one that another
// program wrote; tensors unlike the layers that it describes.
Result<SavedModel> read_exported_model(const Bytes& file, const std::string& path);

}  // namespace fettle::trainer
