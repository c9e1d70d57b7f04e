// FencedTransport: sends writes only while this replica may write. Reads always pass.
//
// The last defence against a leader that does not yet know that its lease has expired: requests in
// flight may still be carried out, but no new requests are sent. Thread-safe, like the transport
// behind it.
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "kube/client/http.h"

namespace fettle::op {

class FencedTransport final : public kube::HttpTransport {
 public:
  FencedTransport(kube::HttpTransport& transport, std::function<bool()> may_write)
      : transport_(transport), may_write_(std::move(may_write)) {}

  kube::HttpResult call(const kube::HttpRequest& request,
                        std::chrono::milliseconds deadline) override {
    if (request.method != "GET" && !may_write_()) {
      return kube::HttpFailure{/*maybe_done=*/false, "not the leader any more; nothing was sent"};
    }
    return transport_.call(request, deadline);
  }

  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          std::chrono::milliseconds idle, std::stop_token stop) override {
    return transport_.stream(request, on_line, idle, std::move(stop));
  }

 private:
  kube::HttpTransport& transport_;
  const std::function<bool()> may_write_;
};

}  // namespace fettle::op
