// Embedding of tokens with learned positions, CPU reference and, being bound by memory, the fast
// backend's too.
//
//   forward    y[s, t] = table[tokens[s, t]] + positions[t]
//   backward   dtable[tokens[s, t]] += dy[s, t],  dpositions[t] += dy[s, t]
//
// Sums in fp32, in order of samples, then tokens.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<EmbeddingOp> reference_embedding(const EmbeddingShape& shape,
                                                 const PlanOptions& plan);

}  // namespace fettle::kernels
