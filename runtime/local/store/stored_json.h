// Objects of other versions of fettle, changed without losing what this one does not know.
//
// A reader leaves out fields that it does not know. So an object is not written as it was read, but
// as the stored document with what has changed in between. Pure functions; usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace fettle::local {

// `stored` with every difference between `before`, as this version writes what it read of it, and
// `after`. Items of lists correspond by position, so of a list that only grows nothing is lost.
Json carry_over(const Json& stored, const Json& before, const Json& after);

// Paths of what `stored` has and `known` has not, at most `most`, in document order.
std::vector<std::string> unknown_paths(const Json& stored, const Json& known, std::size_t most);

}  // namespace fettle::local
