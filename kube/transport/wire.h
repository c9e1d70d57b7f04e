// Wire: one HTTP request and its answer, block by block; what a transport (transport.h) needs of an
// HTTP library. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kube/http.h"
#include "kube/transport/credentials.h"

namespace fettle::kube {

// How the caller of Wire::exchange waits for an answer, and what it does with it.
struct Waiting {
  std::function<SteadyTime()> until;  // asked before each block
  std::string timeout_text;           // what to say when it was that late
  std::stop_token stop;
  // A part of the body, and whether to go on. The server waits while it runs.
  std::function<bool(int status, std::string_view block)> on_block;
};

class Wire {
 public:
  // Calls and streams use connections of their own.
  enum class Purpose { kCall, kStream };

  virtual ~Wire() = default;

  // The answer without its body, which `waiting` gets, on the calling thread. With a status also
  // when it was stopped, or had enough, after the head of the answer.
  virtual HttpResult exchange(Purpose purpose, const HttpRequest& request,
                              const Credential& credential, const Waiting& waiting) = 0;
};

}  // namespace fettle::kube
