// The reference backend: every operation's CPU reference behind the Backend interface.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fettle::kernels {

// Plain C++ for any x86-64, one thread, a fixed order of summation: the same inputs give the same
// bits on every machine. bf16 is emulated (reference/floats.h).
std::unique_ptr<Backend> reference_backend();

}  // namespace fettle::kernels
