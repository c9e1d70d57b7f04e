// Where Fettle keeps what it can work out again: below the user's folder for caches (the XDG Base
// Directory Specification). Any thread, as long as none changes the environment.
#pragma once

#include <string>

namespace fettle {

// What the environment variable `variable` says (a folder, or "off": ""), else
// $XDG_CACHE_HOME/fettle/`name`, else ~/.cache/fettle/`name`; "" where there is no home.
std::string cache_folder(const char* variable, const std::string& name);

}  // namespace fettle
