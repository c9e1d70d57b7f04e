// Sorts the tokens of a batch, so that all places of one token lie together, in their order.
// Included by .cu files only.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/device.h"

namespace fettle::kernels::cuda {

// Tokens and where each of them was, side by side.
struct TokenPlaces {
  std::int32_t* tokens = nullptr;
  std::int32_t* places = nullptr;
};

// A stable sort of `count` tokens below `vocabulary`: equal tokens stay in order. Both buffers hold
// `count` of each; the result is in the one that is returned.
TokenPlaces sort_tokens(Device& device, std::int64_t vocabulary, std::int32_t count,
                        const std::int32_t* tokens, TokenPlaces buffer, TokenPlaces other);

}  // namespace fettle::kernels::cuda
