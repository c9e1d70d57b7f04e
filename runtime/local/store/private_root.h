// The directory in which Studies are kept, `.fettle`: its user's alone.
//
// It holds the values of a Study's environment variables and the output of trials. And a directory
// that another user made, in a place where all may write, could redirect what fettle writes.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::local {

// Makes `root` with the mode 0700, its parents as the umask says. An existing one keeps its mode,
// so chmod can share it. kIo: it cannot be made. kInvalid: it belongs to another user, or is a link
// that another user made; in words, with the way out.
Status make_private_root(const std::string& root);

}  // namespace fettle::local
