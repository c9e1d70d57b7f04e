// Notes that our own kernels do an operation by design, not as a fall-back.
#pragma once

#include "kernels/cuda/libraries/library_plans.h"
#include "kernels/shapes.h"

namespace fettle::kernels {

template <class Shape>
void note_own(cuda::LibraryPlans& libraries, const Shape& shape, const PlanOptions& plan) {
  for (const char* pass : {"forward", "backward"}) {
    libraries.implementations().add({describe(shape, plan, plan.max_samples), pass, "own", "", ""});
  }
}

}  // namespace fettle::kernels
