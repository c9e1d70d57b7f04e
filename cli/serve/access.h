// Access: who may read the pages that `fettle serve` serves.
//
// Other users of the machine can reach its loopback address, and so can pages of other sites in
// this user's browser. So a request needs the token: in a query once (the printed address), after
// that in a cookie that scripts cannot read and other sites do not send, or in an Authorization
// header (Prometheus, a proxy). A foreign Host is refused (DNS rebinding), and so is any Origin: no
// page of these sends one. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/http/http_server.h"
#include "base/result.h"

namespace fettle::cli {

class Access {
 public:
  // `token`: as check_token() accepts it. `cookie`: the name of the cookie; browsers do not keep
  // cookies of one host apart by port, so each server takes another name.
  Access(std::string token, std::string cookie);

  // Returns the answer to a request that goes no further; nullopt = it may be answered.
  std::optional<HttpAnswer> refuse(const HttpRequest& request) const;

  // "?token=...", for the printed address.
  std::string query() const { return "?token=" + token_; }

 private:
  bool has_cookie(std::string_view cookies) const;

  const std::string token_;
  const std::string cookie_;
};

// 16 to 256 letters, digits, "-" and "_". kInvalid, in words.
Status check_token(std::string_view token);

// Returns whether a Host header names this machine: 127.0.0.1, localhost or [::1], with any port,
// since a tunnel may have another one.
bool is_this_machine(std::string_view host);

// Adds the headers that every answer has: no other site may frame, read or run it, and it may load
// from here alone.
void add_safety_headers(HttpAnswer& answer);

}  // namespace fettle::cli
