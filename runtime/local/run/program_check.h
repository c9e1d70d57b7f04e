// Checks that the program of a template exists, and finds parameters that it seems not to use,
// before the first trial, not after sixty have failed.
//
// Reads the file system of this machine, for local runs only. Names that are put together from
// variables are not checked. Usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "api/study/study.h"
#include "base/result.h"

namespace fettle::local {

// Whether the container's command can be found from `directory` (where trials start, "" = here):
// its program, and the script of an interpreter. kInvalid, in words.
Status check_program(const api::Study& study, const std::string& directory);

// Sentences about parameters that neither the template nor the script mentions. Empty if that
// cannot be known, because a program may read its environment in any way.
std::vector<std::string> unused_parameters(const api::Study& study, const std::string& directory);

}  // namespace fettle::local
