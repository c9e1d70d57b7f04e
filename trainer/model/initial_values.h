// Initial values of a network's parameters. Each is a function of (key, stream, its index in the
// block) alone, so any number of threads draws the same bits. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Fills `block` of the array `all` as the block specifies (bound, deviation, fill).
void draw_initial(const Block& block, std::uint64_t key, std::uint64_t stream, std::int64_t threads,
                  float* all);

// As many threads as this process may use, up to a limit.
std::int64_t threads_for_drawing();

}  // namespace fettle::trainer
