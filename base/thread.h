// start_thread: a thread, or in words why the system has no room for one.
//
// std::thread throws where the limit on processes is reached (ulimit -u, pids.max of a container),
// which would end the program without a sentence.
#pragma once

#include <functional>
#include <thread>

#include "base/result.h"

namespace fettle {

// kUnavailable: there can be no thread now.
Result<std::thread> start_thread(std::function<void()> work);

// The sentence for that, also where a library threw it.
Error no_thread(const std::string& why);

}  // namespace fettle
