// What becomes of a pass that a library has no plan for: a kernel of ours does it, which may be far
// slower. That is never silent: Backend::implementations() lists it, standard error says so once,
// and with FETTLE_CUDA_STRICT=1 it is an error. Belongs to the device's thread.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "kernels/cuda/libraries/library_plans.h"

namespace fettle::kernels::cuda {

// Notes that a kernel of ours does `pass` instead of `pass.by`, the library. Errors: it may not.
Status fall_back(LibraryPlans& plans, Implementation pass, const Error& reason);

// The library's plan, or nothing where it has none for this shape (kNotFound) and ours does it.
// Errors: any other of the library's; it may not fall back.
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

// Behind the reason why a plan could not be run, though it has been run once when it was taken
// (plan_timer.h; not if there was no memory for that).
inline constexpr const char* kHowToGoOn =
    "; FETTLE_CUDA_OWN=1 trains with our own kernels, and compute-sanitizer or "
    "CUDA_LAUNCH_BLOCKING=1 show whose fault it is";

// Notes that `pass.by`, the library, does `pass` without `fusion`, which is a kernel of ours.
void note_apart(LibraryPlans& plans, const Implementation& pass, const std::string& fusion,
                const Error& reason);

// The library's plan with a fusion that the pass can do without, or nothing, whatever the error: if
// the library is at fault, its plan without the fusion has the same error. It is a note even with
// FETTLE_CUDA_STRICT=1, because the pass is still the library's.
template <class Plan>
std::optional<Plan> plan_if_there(LibraryPlans& plans, const Implementation& pass,
                                  const std::string& fusion, Result<Plan> planned) {
  if (planned.ok()) return std::optional<Plan>(std::move(planned).value());
  note_apart(plans, pass, fusion, planned.error());
  return std::nullopt;
}

// Whether libraries may do more in a product or convolution than what it is: a bias, a ReLU, a
// GELU, a bias gradient. FETTLE_CUDA_EPILOGUES=0: they are kernels of ours, for comparison.
bool wants_epilogues();

}  // namespace fettle::kernels::cuda
