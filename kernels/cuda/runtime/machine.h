// Whether this machine's GPU can run what was compiled, told from numbers alone, so that every
// answer can be tried without a GPU. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle::kernels::cuda {

// What the CUDA runtime says; versions as it numbers them, 1000 x major + 10 x minor.
struct MachineFacts {
  int error = 0;           // of counting the devices or asking for the first, and its words
  std::string error_text;  //
  int driver_version = 0;  // 0: there is no driver
  int runtime_version = 0;
  int devices = 0;
  // Of the first device.
  std::string name;
  int major = 0;
  int minor = 0;
};

// 13000: "13.0".
std::string version_text(int version);

// Whether code for one of these runs on the device. `architectures`: as CMake writes them, but with
// commas: "80-real,90a-real,100". Compiled code runs on later minors of its major, but for those
// with an "a" (that one only) or "f" (its family); without "-real" there is also PTX, which the
// driver compiles for any later one.
bool runs_on(std::string_view architectures, int major, int minor);

// Errors: no GPU, a driver that is too old, a GPU for which nothing was compiled.
Status check_machine(const MachineFacts& facts, std::string_view architectures);

}  // namespace fettle::kernels::cuda
