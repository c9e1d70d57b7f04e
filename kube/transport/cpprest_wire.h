// The Wire over cpprestsdk. cpprest_wire.cpp is the only file that includes the library, and
// explains its defects and their workarounds.
//
// HTTP/1.1. All handlers of the library run on one thread, shared by all wires.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/transport/tls.h"
#include "kube/transport/wire.h"

namespace fettle::kube {

// `server` is "https://10.0.0.1:6443", perhaps with a path. kInvalid: it cannot be used. Destroy it
// when no exchange is running, before main() ends.
Result<std::unique_ptr<Wire>> make_cpprest_wire(const std::string& server,
                                                const std::string& user_agent,
                                                std::shared_ptr<Tls> tls);

}  // namespace fettle::kube
