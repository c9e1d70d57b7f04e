// SampleFormat: the facts about samples that a network is planned for. A value.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/backend.h"

namespace fettle::trainer {

// The shape and meaning of one sample.
struct SampleFormat {
  kernels::ImageShape input;  // of text: [tokens, 1, 1]
  std::int64_t classes = 0;   // of text: size of the vocabulary
  bool tokens = false;        // the inputs are token ids (int32), each with a label
  std::string vocabulary;     // of text: the ids of tokens, in words
};

}  // namespace fettle::trainer
