// Client: typed verbs of the Kubernetes API over an HttpTransport.
//
// Retry rules are client-go's: 429 and 5xx are retried only if the server sends Retry-After,
// network failures only for reads; a write with an unknown outcome is an error, and the caller
// reads and plans again. One token bucket limits all calls, except calls of a reserved client (the
// Lease). Errors carry the API server's own message:
//   kInvalid        400, 413, 422: the object is wrong
//   kForbidden      401, 403: rights, quota, admission
//   kNotFound       404, 410 on a read
//   kAlreadyExists  409 AlreadyExists
//   kConflict       409 otherwise: the resourceVersion or uid is stale
//   kUnavailable    429, 5xx, timeouts, network, a namespace being deleted: try later
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kube/client/call_made.h"
#include "kube/client/http.h"
#include "kube/client/rate_limiter.h"
#include "kube/objects/resource.h"

namespace fettle::kube {

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
};

// An answered write. `warnings` are the server's Warning headers (from Pod Security, for example).
struct Written {
  Json object;
  std::vector<std::string> warnings;
};

struct WriteOptions {
  bool dry_run = false;  // checked completely, with unknown fields as errors, and not stored
};

struct RemoveOptions {
  std::string uid;               // required: never delete by name alone
  std::string resource_version;  // "" = any
  bool foreground = false;  // wait for dependents; otherwise they are deleted in the background
};

struct ClientOptions {
  std::string field_manager = "fettle";
  std::chrono::milliseconds deadline{30'000};  // of one call with its retries
  double calls_per_second = 200;               // 0 = no limit
  int burst = 400;
  std::function<void(const CallMade&)> on_call;          // from any thread; may be empty
  std::function<void(std::chrono::milliseconds)> pause;  // empty = this thread sleeps
  // Monotonic time, for tests under a virtual clock; empty = the machine's.
  std::function<std::chrono::steady_clock::time_point()> now = {};
};

class Client {
 public:
  Client(HttpTransport& transport, ClientOptions options);

  Result<Json> get(const Resource& resource, const ObjectKey& key,
                   std::string_view subresource = "");
  // Returns all pages. Consistent: reads the newest state (resourceVersion ""). Fills in the items'
  // kind and apiVersion.
  Result<std::vector<Json>> list(const Resource& resource, const std::string& ns,
                                 const ListOptions& options = {});
  Result<Written> create(const Resource& resource, const std::string& ns, const Json& object,
                         const WriteOptions& options = {});
  // PUT; `object` carries the resourceVersion at which it was read.
  Result<Written> update(const Resource& resource, const ObjectKey& key,
                         std::string_view subresource, const Json& object);
  // JSON merge patch; optimistic if it contains metadata.resourceVersion.
  Result<Written> patch(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource, const Json& patch);
  // Server-side apply, forced. Afterwards `manager` owns exactly the fields of `object`. With
  // metadata.resourceVersion in `object`: kConflict if it is stale.
  Result<Written> apply(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource, const Json& object, std::string_view manager,
                        const WriteOptions& options = {});
  // kNotFound if it is gone, kConflict if another object has the name now.
  Status remove(const Resource& resource, const ObjectKey& key, const RemoveOptions& options);

  // Reads the container's log line by line, from its beginning (or the newest `tail` lines), and
  // with `follow` until it ends. `on_line` returns false to end it earlier.
  struct LogOptions {
    std::string container;  // "" = the only one
    bool follow = false;
    std::optional<std::int64_t> tail;
    std::optional<std::int64_t> limit_bytes;
  };
  Status read_log(const ObjectKey& pod, const LogOptions& options,
                  const std::function<bool(std::string_view line)>& on_line, std::stop_token stop);

  // Reads a piece of the container's log as it is now, each line after its time. The server cuts it
  // off after `limit_bytes`, even within a line, and knows times by the second: lines start at the
  // beginning of `since_ms`'s second. Never retried.
  struct LogWindow {
    std::string container;
    std::optional<std::int64_t> since_ms;
    std::optional<std::int64_t> tail;
    std::int64_t limit_bytes = 0;
  };
  Result<std::string> read_log_window(const ObjectKey& pod, const LogWindow& window);

  HttpTransport& transport() { return transport_; }

 private:
  // The names of a call in metrics and errors.
  struct Call {
    std::string_view verb;
    std::string resource;  // "trials/status"
    std::string what;      // "get Trial team/digits-3"
  };
  static Call describe_call(std::string_view verb, const Resource& resource, const ObjectKey& key,
                            std::string_view subresource);

  Result<Json> read(const HttpRequest& request, const Call& call);
  Result<Written> write(const HttpRequest& request, const Call& call);
  Result<HttpResponse> send(const HttpRequest& request, const Call& call);
  HttpResult timed(const Call& call, const std::function<HttpResult()>& make) const;
  void pause(std::chrono::microseconds time) const;
  std::chrono::steady_clock::time_point now() const;

  HttpTransport& transport_;
  const ClientOptions options_;
  RateLimiter limiter_;
};

}  // namespace fettle::kube
