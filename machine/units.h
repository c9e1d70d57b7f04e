// Formats numbers with their units, to three digits, for people. Pure functions.
#pragma once

#include <string>

namespace fettle::machine {

// "1.25 GiB", "640 MiB", "17 bytes".
std::string bytes_text(double bytes);
// "3.35 TB/s", "870 MB/s": bandwidths use powers of ten.
std::string rate_text(double bytes_per_second);
// "989 TFLOP"; for a rate append "/s".
std::string flops_text(double flops);
// "1.25 s", "3.40 ms", "12.0 us".
std::string seconds_text(double seconds);

}  // namespace fettle::machine
