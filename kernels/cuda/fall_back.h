// What becomes of a pass that a library has no plan for: a kernel of ours does it, which may be far
// slower. That is never silent: Backend::implementations() lists it, standard error says so once,
// and with FETTLE_CUDA_STRICT=1 it is an error. Belongs to the device's thread.
#pragma once

#include <optional>
#include <utility>

#include "base/result.h"
#include "kernels/cuda/device.h"

namespace fettle::kernels::cuda {

// Notes that a kernel of ours does `pass` instead of `pass.by`, the library. Errors: it may not.
Status fall_back(Device& device, Implementation pass, const Error& reason);

// The library's plan, or nothing where it has none for this shape (kNotFound) and ours does it.
// Errors: any other of the library's; it may not fall back.
template <class Plan>
Result<std::optional<Plan>> plan_or_own(Device& device, const Implementation& pass,
                                        Result<Plan> planned) {
  if (planned.ok()) {
    device.implementations().add(pass);
    return std::optional<Plan>(std::move(planned).value());
  }
  if (planned.error().code != ErrorCode::kNotFound) return planned.error();
  FETTLE_TRY(fall_back(device, pass, planned.error()));
  return std::optional<Plan>();
}

}  // namespace fettle::kernels::cuda
