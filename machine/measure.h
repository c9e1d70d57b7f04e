// Bandwidths that no file reports: measured, each for a fraction of a second.
//
// They are what this process gets now, beside all other load. Blocking; usable from any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::machine {

// Bytes per second that `threads` threads read and write, in blocks larger than any cache.
double measure_memory(int threads);

struct DiskRate {
  double write = 0;  // bytes a second, including the flush to disk
  double read = 0;   // with caches dropped, if the file system obeys
};
// Measures with an unnamed file of at most 256 MiB, removed afterwards.
// Errors: the directory cannot be written.
Result<DiskRate> measure_disk(const std::string& directory);

// Bytes a second through a TCP connection of this machine with itself, as its workers use.
// Errors: no loopback.
Result<double> measure_loopback();

}  // namespace fettle::machine
