// The Wire over cpprestsdk: the only place that knows that library.
//
// HTTP/1.1. The library's handlers all run on one thread of its own, the same for all wires. What
// it does wrong, and what is done about it, stands in cpprest_wire.cpp.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/transport/tls.h"
#include "kube/transport/wire.h"

namespace fettle::kube {

// `server` is "https://10.0.0.1:6443", perhaps with a path. kInvalid: it cannot be used. Destroyed
// when no exchange is running, before main() ends.
Result<std::unique_ptr<Wire>> make_cpprest_wire(const std::string& server,
                                                const std::string& user_agent,
                                                std::shared_ptr<Tls> tls);

}  // namespace fettle::kube
