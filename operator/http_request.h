// The head of an HTTP/1.1 request, as far as a server needs it that answers GET and nothing else
// (RFC 9112). A pure function; usable from any thread.
#pragma once

#include <string>
#include <string_view>

namespace fettle::op {

struct HttpRequestHead {
  enum class State {
    kIncomplete,  // more bytes may make it whole
    kBad,         // `status` says what is wrong
    kGood,
  };
  State state = State::kIncomplete;
  int status = 0;     // kBad: 400, 405, 413, 505
  bool head = false;  // HEAD: the answer has no body
  std::string path;   // without query
};

// Reads what was received so far. Bodies are not accepted.
HttpRequestHead read_request_head(std::string_view received);

// "Not Found" for 404.
std::string_view reason_phrase(int status);

}  // namespace fettle::op
