// TrialLogReader: reads a trial's log (trial_log.h) while it is written, after it was finished, and
// after its writer was killed.
//
// Each read() continues where the last one ended. Bytes that are gone by then become a note
// that says how many. Holds no file open between reads. Not synchronised.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fettle::local {

class TrialLogReader {
 public:
  using Print = std::function<void(std::string_view bytes)>;

  explicit TrialLogReader(std::string path) : path_(std::move(path)) {}

  // Prints the new output, in pieces. `ended`: its writer has ended. kNotFound: there is no log;
  // kIo: it cannot be read.
  Status read(bool ended, const Print& print);

 private:
  void copy(int file, std::int64_t from, std::int64_t to, const Print& print);
  void read_pieces(const Print& print);
  void read_finished(int file, std::int64_t size, const Print& print);
  void skip_to(std::int64_t offset, std::int64_t all, const Print& print);

  const std::string path_;
  std::int64_t offset_ = 0;  // bytes of the output that were printed, or are known to be missing
};

}  // namespace fettle::local
