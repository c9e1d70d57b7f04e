// The directory in which Studies are kept, `.fettle`: its user's alone.
//
// What lies in it are the values of a Study's environment variables, and whatever trials print. And
// a directory that somebody else made in a place that all may write to could lead fettle's writes
// anywhere.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::local {

// Makes `root` with the mode 0700, its parents as the umask says. One that is there keeps its mode:
// whoever wants to share it says so by chmod. kIo: it cannot be made. kInvalid: it belongs to
// another user, or is a link that another user made; in words, with the way out.
Status make_private_root(const std::string& root);

}  // namespace fettle::local
