// Whether the program of a template is there, and what it seems not to use: said before the first
// trial, not by sixty that fail.
//
// Looks at the file system of this machine, for local runs alone. A name that is put together from
// variables is not looked for. Usable from any thread.
#pragma once

#include <string>
#include <vector>

#include "api/study.h"
#include "base/result.h"

namespace fettle::local {

// Whether the container's command can be found from `directory` (where trials start, "" = here):
// its program, and the script of an interpreter. kInvalid, in words.
Status check_program(const api::Study& study, const std::string& directory);

// Sentences about parameters that neither the template nor the script mentions. Empty where that
// cannot be known: a program reads its environment as it likes.
std::vector<std::string> unused_parameters(const api::Study& study, const std::string& directory);

}  // namespace fettle::local
