// start_thread: starts a thread, or explains why the system has no room for one.
//
// std::thread throws when the limit on processes is reached (ulimit -u, pids.max of a container),
// which would end the program without a message.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace fettle {

// kUnavailable: no thread can be started now.
Result<std::thread> start_thread(std::function<void()> work);

// The error for that case, also if a library threw it.
Error no_thread(const std::string& why);

}  // namespace fettle
