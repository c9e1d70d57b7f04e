#include "kernels/cuda/libraries/fall_back.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fettle::kernels::cuda {
namespace {

bool is_strict() {
  const char* value =
      std::getenv("FETTLE_CUDA_STRICT");  // NOLINT(concurrency-mt-unsafe): read only
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

Status fall_back(LibraryPlans& plans, Implementation pass, const Error& reason) {
  if (is_strict()) {
    return invalid(reason.message + "; FETTLE_CUDA_STRICT=1 does not let our own kernels do " +
                   pass.operation + ", " + pass.pass);
  }
  pass.by = "own";
  pass.fused.clear();  // applied to the library's kernel
  pass.reason = reason.message;
  if (plans.implementations().add(pass)) {  // new: noted once
    std::fprintf(stderr, "note: %s; our own kernels do it\n", reason.message.c_str());
  }
  return success();
}

void note_apart(LibraryPlans& plans, const Implementation& pass, const std::string& fusion,
                const Error& reason) {
  const Implementation apart{pass.operation, pass.pass + ", " + fusion, "own", "", reason.message};
  if (plans.implementations().add(apart)) {
    std::fprintf(stderr, "note: %s; %s is a kernel of ours\n", reason.message.c_str(),
                 fusion.c_str());
  }
}

bool wants_epilogues() {
  const char* value = std::getenv("FETTLE_CUDA_EPILOGUES");  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr || std::string_view(value) != "0";
}

}  // namespace fettle::kernels::cuda
