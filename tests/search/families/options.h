// Options that the programs of this folder share, read from a command line. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/search/families/tasks.h"

namespace fettle::search::families {

struct Options {
  std::vector<std::string> algorithms;
  std::vector<std::string> kinds = families::kinds();
  std::vector<std::string> laws;  // of cost; empty: the program has none, and no option for them
  std::uint64_t tasks = 10;       // of each kind
  std::uint64_t first = 0;        // number of the first
  std::int64_t pending = 1;
};

// Replaces what `arguments`, --name value pairs, say. False, after a sentence on standard error,
// where there is no such option.
bool read_options(const std::vector<std::string>& arguments, Options& options);

}  // namespace fettle::search::families
