// Formats numbers with their units, to three digits, for people. Pure functions.
#pragma once

#include <string>

namespace fettle::machine {

// "1.25 GiB", "640 MiB", "17 bytes".
std::string bytes_text(double bytes);
// "989 TFLOP".
std::string flops_text(double flops);

}  // namespace fettle::machine
