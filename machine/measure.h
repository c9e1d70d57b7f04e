// Bandwidths that no file tells: measured, each for a fraction of a second.
//
// They are what this process gets now, beside whatever else runs. Blocking; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace fettle::machine {

// Bytes a second that so many threads read and write, of blocks that no cache holds.
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
