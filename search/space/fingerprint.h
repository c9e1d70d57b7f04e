// What the numbers of a search depend on beside its program: the processor's instructions, by which
// the mathematical library chooses its exp, log and pow, and the version of that library.
//
// The same history gives the same decisions where fingerprints are alike. Where they differ, last
// digits may (docs/decisions/0038). Thread-safe.
#pragma once

#include <string>

namespace fettle::search {

// "fettle 0.1.0, x86_64, glibc 2.36, libm 1f0c9a3e": the last is a sum over the bits of what the
// library computes at fixed places. The same throughout a process.
const std::string& fingerprint();

}  // namespace fettle::search
