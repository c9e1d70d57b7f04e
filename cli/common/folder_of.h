// The folder against which paths inside a file are resolved. Usable from any thread.
#pragma once

#include <string>

namespace fettle::cli {

// Returns the folder of a study file, in which its trials start: absolute; "" for standard input,
// this process's own.
std::string folder_of(const std::string& path);

}  // namespace fettle::cli
