// Causal attention for CPUs; formulas as reference.h, in fp32.
//
// A head of a sample is small (its keys and values fit the second-level cache), so heads are the
// unit of parallel work and everything below runs on one core: the head's numbers are copied
// together, and sixteen queries at a time meet the keys before them in small matrix products
// (product.h). Neither pass holds more than sixteen rows of the attention matrix. A head's result
// does not depend on the number of threads.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// fp32 or bf16; the shape has been checked (shapes.h).
std::unique_ptr<AttentionOp> fast_attention(const AttentionShape& shape, const PlanOptions& plan);

}  // namespace fettle::kernels
