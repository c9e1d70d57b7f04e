// Fall-back for a pass that a library has no plan for: our own kernel does it, which may be far
// slower. This is never silent: Backend::implementations() lists it, standard error notes it once,
// and with FETTLE_CUDA_STRICT=1 it is an error. Belongs to the device's thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "kernels/cuda/libraries/library_plans.h"

namespace fettle::kernels::cuda {

// Notes that our own kernel does `pass` instead of `pass.by`, the library. Errors: not allowed.
Status fall_back(LibraryPlans& plans, Implementation pass, const Error& reason);

// Returns the library's plan, or nullopt if it has none for this shape (kNotFound) and our own
// kernel does the pass. Errors: the library's others, or the fall-back is not allowed.
template <class Plan>
Result<std::optional<Plan>> plan_or_own(LibraryPlans& plans, const Implementation& pass,
                                        Result<Plan> planned) {
  if (planned.ok()) {
    plans.implementations().add(pass);
    return std::optional<Plan>(std::move(planned).value());
  }
  if (planned.error().code != ErrorCode::kNotFound) return planned.error();
  FETTLE_TRY(fall_back(plans, pass, planned.error()));
  return std::optional<Plan>();
}

// Appended to the reason why a plan could not be run, although it ran once when it was chosen
// (plan_timer.h; not if memory was short).
inline constexpr const char* kHowToGoOn =
    "; FETTLE_CUDA_OWN=1 trains with our own kernels, and compute-sanitizer or "
    "CUDA_LAUNCH_BLOCKING=1 show whose fault it is";

// Notes that `pass.by`, the library, does `pass` without `fusion`, which our own kernel does.
void note_apart(LibraryPlans& plans, const Implementation& pass, const std::string& fusion,
                const Error& reason);

// Returns the library's plan with an optional fusion, or nullopt on any error: if the library is at
// fault, its plan without the fusion fails in the same way. It is a note even with
// FETTLE_CUDA_STRICT=1, because the pass is still the library's.
template <class Plan>
std::optional<Plan> plan_if_there(LibraryPlans& plans, const Implementation& pass,
                                  const std::string& fusion, Result<Plan> planned) {
  if (planned.ok()) return std::optional<Plan>(std::move(planned).value());
  note_apart(plans, pass, fusion, planned.error());
  return std::nullopt;
}

// Whether libraries may fuse work into a product or convolution: a bias, a ReLU, a GELU, a bias
// gradient. FETTLE_CUDA_EPILOGUES=0: our own kernels do it, for comparison.
bool wants_epilogues();

}  // namespace fettle::kernels::cuda
