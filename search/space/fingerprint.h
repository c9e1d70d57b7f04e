// Fingerprint: the things besides the program that the numbers of a search depend on: the
// processor's instructions, by which the mathematical library chooses its exp, log and pow, and the
// version of that library.
//
// The same history gives the same decisions if fingerprints are equal. If they differ, last digits
// may differ (docs/decisions/0038). Thread-safe.
#pragma once

#include <string>

namespace fettle::search {

// "fettle 0.1.0, x86_64, glibc 2.36, libm 1f0c9a3e": the last part is a hash of the bits that the
// library computes at fixed arguments. The same throughout a process.
const std::string& fingerprint();

}  // namespace fettle::search
