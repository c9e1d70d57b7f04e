// Folders for data that Fettle can recompute, below the user's folder for caches (XDG Base
// Directory Specification). Any thread, as long as none changes the environment.
#pragma once

#include <string>

namespace fettle {

// The value of the environment variable `variable` (a folder, or "off": ""), else
// $XDG_CACHE_HOME/fettle/`name`, else ~/.cache/fettle/`name`; "" without a home.
std::string cache_folder(const char* variable, const std::string& name);

}  // namespace fettle
