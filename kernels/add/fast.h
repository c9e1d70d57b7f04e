// Addition of the fast backends: loops.h compiled for AVX-512, AVX2 and plain x86-64. The same bits
// as the reference. Pure; usable from any thread.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace fettle::kernels {

void fast_add(DataType type, std::int64_t count, ConstBuffer a, ConstBuffer b, Buffer y, bool relu);

}  // namespace fettle::kernels
