// TensorNames: where the tensors of a network stand in a file that another program wrote.
//
// Three ways of naming them: fettle, as named_weights.h; gpt2, as Hugging Face's GPT2LMHeadModel,
// whose linear layers are transposed; resnet, as torchvision's, whose modules are matched with the
// network's layers in their order. Pure functions; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "api/trainer/trainer_config.h"
#include "base/result.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/safetensors.h"

namespace fettle::trainer {

struct FileTensor {
  std::string name;
  bool transposed = false;     // [inputs, outputs]
  bool may_be_longer = false;  // the first rows are taken
};

// For each of the tensors of named_weights(). Errors: the file has other names; a network of
// another kind.
Result<std::vector<FileTensor>> names_in_file(const SafetensorsFile& file, api::TensorNames names,
                                              const std::vector<NamedWeight>& weights);

// Whether the tensor holds nothing that a network learns, or a copy of another tensor: attention's
// masks, counts of batches, GPT-2's head.
bool is_spare_tensor(const std::string& name);

}  // namespace fettle::trainer
