// SampleFormat: what a network is told of the samples that it is planned for. A value.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/backend.h"

namespace fettle::trainer {

// What a sample is, and what is to be told of it.
struct SampleFormat {
  kernels::ImageShape input;  // of text: [tokens, 1, 1]
  std::int64_t classes = 0;   // of text: how many tokens there are
  bool tokens = false;        // the input are token ids (int32), and each has a label
  std::string vocabulary;     // of text: which token is which, in words
};

}  // namespace fettle::trainer
