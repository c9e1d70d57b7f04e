// Causal multi-head self-attention (Vaswani et al. 2017), CPU reference.
//
// Every head of every sample by itself; for a query i and the keys j <= i:
//   forward    s[i, j] = q[i] k[j] / sqrt(width),  p[i, .] = softmax(s[i, .]),
//              y[i] = sum over j of p[i, j] v[j]
//   backward   e[i, j] = dy[i] v[j],  ds[i, j] = p[i, j] (e[i, j] - dy[i] y[i])
//              dv[j] = sum over i of p[i, j] dy[i]
//              dq[i] = sum over j of ds[i, j] k[j] / sqrt(width),  dk[j] likewise with q[i]
//
// Between the two only log sum exp s[i, .] is kept, from which backward finds p again: the p of all
// heads would be as large as all other activations together. Sums run in double, in order of j (of
// i for dk and dv).
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// The shape has been checked (shapes.h).
std::unique_ptr<AttentionOp> reference_attention(const AttentionShape& shape,
                                                 const PlanOptions& plan);

}  // namespace fettle::kernels
