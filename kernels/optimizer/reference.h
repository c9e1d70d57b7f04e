// The optimisers as the reference has them: the loops of loops.h and lamb.h for any processor.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace fettle::kernels {

std::unique_ptr<UpdateOp> reference_update(UpdateRule rule, std::vector<UpdateBuffers> parts,
                                           const UpdateSettings& settings);

}  // namespace fettle::kernels
