// Whether this machine's GPU can run the compiled code, decided from numbers alone, so that every
// answer can be tested without a GPU. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle::kernels::cuda {

// The CUDA runtime's description of the machine; versions are 1000 x major + 10 x minor.
struct MachineFacts {
  int error = 0;           // of counting the devices or querying the first, with its message
  std::string error_text;  //
  int driver_version = 0;  // 0: no driver
  int runtime_version = 0;
  int devices = 0;
  // Properties of the first device.
  std::string name;
  int major = 0;
  int minor = 0;
};

// Returns "13.0" for 13000.
std::string version_text(int version);

// Whether code for any of `architectures` runs on the device. They are in CMake's notation, but
// with commas: "80-real,90a-real,100". Compiled code runs on later minors of its major, except with
// an "a" (that one only) or "f" (its family); without "-real" it includes PTX, which the driver
// compiles for any later architecture.
bool runs_on(std::string_view architectures, int major, int minor);

// Errors: no GPU, an old driver, or a GPU for which nothing was compiled.
Status check_machine(const MachineFacts& facts, std::string_view architectures);

}  // namespace fettle::kernels::cuda
