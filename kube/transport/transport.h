// Transport: the HttpTransport of production, over a Wire. It splits lines, bounds bodies, and
// retries with a newer token if one is refused.
// Thread-safe. Destroyed when no call or stream is running, before main() ends.
#pragma once

#include <memory>
#include <string>

#include "kube/client/http.h"
#include "kube/transport/credentials.h"
#include "kube/transport/wire.h"

namespace fettle::kube {

// Most bytes of an answer. A page of 500 objects has a few megabytes.
inline constexpr std::size_t kMaxBody = 64u << 20;

class Transport final : public HttpTransport {
 public:
  // `server` is its name in messages.
  Transport(std::string server, std::unique_ptr<Wire> wire, std::unique_ptr<TokenSource> tokens)
      : server_(std::move(server)), wire_(std::move(wire)), tokens_(std::move(tokens)) {}

  HttpResult call(const HttpRequest& request, std::chrono::milliseconds deadline) override;
  HttpResult stream(const HttpRequest& request,
                    const std::function<bool(std::string_view line)>& on_line,
                    std::chrono::milliseconds idle, std::stop_token stop) override;

 private:
  // Sends again if the token was refused and a newer one exists.
  HttpResult authorised(const std::function<HttpResult(const Credential&)>& send);
  HttpResult call_once(const HttpRequest& request, const Credential& credential,
                       std::chrono::milliseconds deadline, TimePoint end);
  HttpResult stream_once(const HttpRequest& request, const Credential& credential,
                         const std::function<bool(std::string_view line)>& on_line,
                         std::chrono::milliseconds idle, const std::stop_token& stop);

  const std::string server_;
  const std::unique_ptr<Wire> wire_;
  const std::unique_ptr<TokenSource> tokens_;
};

}  // namespace fettle::kube
