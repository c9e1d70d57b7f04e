// The directory in which Studies are kept, `.fettle`: accessible to its user alone.
//
// It holds the values of a Study's environment variables and the output of trials. Moreover, a
// directory that another user made, where everyone may write, could redirect the files of fettle.
#pragma once

#include <string>

#include "base/result.h"

namespace fettle::local {

// Makes `root` with the mode 0700, its parents as the umask says. An existing one keeps its mode,
// so chmod can share it. kIo: it cannot be made. kInvalid: it belongs to another user, or is a link
// that another user made; in words, with the way out.
Status make_private_root(const std::string& root);

}  // namespace fettle::local
