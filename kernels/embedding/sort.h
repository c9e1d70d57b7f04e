// Sorts the tokens of a batch, so that all places of one token lie together, in order.
// Included by .cu files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// Tokens and their places before sorting, side by side.
struct TokenPlaces {
  std::int32_t* tokens = nullptr;
  std::int32_t* places = nullptr;
};

// Sorts `count` tokens below `vocabulary`, stably: equal tokens stay in order. Both buffers hold
// `count` of each; returns the one with the result.
TokenPlaces sort_tokens(Device& device, std::int64_t vocabulary, std::int32_t count,
                        const std::int32_t* tokens, TokenPlaces buffer, TokenPlaces other);

}  // namespace fettle::kernels::cuda
