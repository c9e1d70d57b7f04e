// Conversions of the fast backends: loops.h compiled for AVX-512, AVX2 and plain x86-64. The same
// bits as the reference. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace fettle::kernels {

void fast_round(DataType type, std::int64_t count, const float* from, std::uint16_t* to);
void fast_widen(DataType type, std::int64_t count, const std::uint16_t* from, float* to);

}  // namespace fettle::kernels
