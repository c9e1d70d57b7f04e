// Bandwidths that no file says: measured, each for a fraction of a second.
//
// They are what this process gets now, beside everything else that runs. Blocking; usable from any
// thread.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::machine {

// Bytes per second that `threads` threads read and write, in blocks larger than any cache.
double measure_memory(int threads);

struct DiskRate {
  double write = 0;  // bytes a second, until the disk has them
  double read = 0;   // after the system was asked to forget them; some file systems do not
};
// In a file of at most 256 MiB that has no name and is gone afterwards.
// Errors: the directory cannot be written.
Result<DiskRate> measure_disk(const std::string& directory);

// Bytes a second through a TCP connection of this machine with itself, as its workers have it.
// Errors: there is no loopback.
Result<double> measure_loopback();

}  // namespace fettle::machine
