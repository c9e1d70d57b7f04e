#include "base/thread.h"

#include <string>
#include <system_error>
#include <utility>

namespace fettle {

Error no_thread(const std::string& why) {
  return Error{ErrorCode::kUnavailable,
               "cannot start a thread: " + why +
                   "; the limit on processes and threads is reached: raise it (ulimit -u, pids.max "
                   "of a container), or end other programs"};
}

Result<std::thread> start_thread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return no_thread(error.code().message());
  }
}

}  // namespace fettle
