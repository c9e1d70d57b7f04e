// The part of this machine that a process may use: containers and taskset may leave it less.
// Read at each call; usable from any thread.
#pragma once

#include <cstdint>

namespace fettle::machine {

// At least 1; a container's quota need not be a whole number.
double usable_cores();

// Bytes.
std::int64_t usable_memory();

}  // namespace fettle::machine
