// Changes objects of other versions of fettle without losing fields that this version does not
// know.
//
// A reader leaves out fields that it does not know. So an object is not written as it was read, but
// as the stored document plus the changes since. Pure functions; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::local {

// Returns `stored` with every difference between `before`, which is `stored` as this version reads
// and writes it, and `after`. Items of lists correspond by position, so a list that only grows
// loses nothing.
Json carry_over(const Json& stored, const Json& before, const Json& after);

// Paths of fields that `stored` has and `known` lacks, at most `most`, in document order.
std::vector<std::string> unknown_paths(const Json& stored, const Json& known, std::size_t most);

}  // namespace fettle::local
