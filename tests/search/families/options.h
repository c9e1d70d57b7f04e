// Options that the programs of this folder share, read from a command line. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/search.h"
#include "tests/search/families/tasks.h"

namespace fettle::search::families {

struct Options {
  std::vector<std::string> algorithms;
  std::vector<std::string> kinds = families::kinds();
  std::vector<std::string> laws;  // of cost; empty: the program has none, and no such option
  std::uint64_t tasks = 10;       // of each kind
  std::uint64_t first = 0;        // number of the first
  std::int64_t pending = 1;
  std::int64_t revision = kNewestRevision;  // of the search (search/search.h)
};

// Replaces the options that `arguments`, --name value pairs, set. False, after a sentence on
// standard error, for an unknown option.
bool read_options(const std::vector<std::string>& arguments, Options& options);

}  // namespace fettle::search::families
