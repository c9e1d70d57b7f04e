// Wire: one HTTP request and its answer, block by block: the part of an HTTP library that a
// transport (transport.h) needs. Thread-safe.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "kube/client/http.h"
#include "kube/transport/credentials.h"

namespace fettle::kube {

// How the caller of Wire::exchange waits for an answer and consumes it.
struct Waiting {
  std::function<TimePoint()> until;  // evaluated before each block
  std::string timeout_text;          // the error after that time
  std::stop_token stop;
  // Gets a part of the body and returns whether to continue. Nothing is received meanwhile.
  std::function<bool(int status, std::string_view block)> on_block;
};

class Wire {
 public:
  // Calls and streams use connections of their own.
  enum class Purpose { kCall, kStream };

  virtual ~Wire() = default;

  // Returns the answer without its body, which `waiting` gets on the calling thread. It has a
  // status even if the caller stopped after the header of the answer.
  virtual HttpResult exchange(Purpose purpose, const HttpRequest& request,
                              const Credential& credential, const Waiting& waiting) = 0;
};

}  // namespace fettle::kube
