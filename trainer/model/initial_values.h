// The numbers that a network starts with. Each is a function of (key, stream, its place in the
// block) alone, so any number of threads draws the same bits. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "trainer/model/network_plan.h"

namespace fettle::trainer {

// Fills `block` of the array `all` as the block says (bound, deviation, fill).
void draw_initial(const Block& block, std::uint64_t key, std::uint64_t stream, std::int64_t threads,
                  float* all);

// As many as this process may use, within reason.
std::int64_t threads_for_drawing();

}  // namespace fettle::trainer
