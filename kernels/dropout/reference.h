// Inverted dropout (Srivastava et al., 2014), CPU reference.
//
//   forward    y = x / (1 - rate) where kept, 0 where dropped      backward   dx likewise from dy
//
// What is kept is drawn by mask.h; backward draws it again instead of remembering it.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

std::unique_ptr<DropoutOp> reference_dropout(float rate, std::int64_t elements_per_sample,
                                             DataType type);

}  // namespace fettle::kernels
