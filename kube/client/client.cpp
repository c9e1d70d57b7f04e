#include "kube/client/client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "api/fields/timestamp.h"
#include "kube/client/api_status.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxRetries = 10;
constexpr milliseconds kReadRetryFirst{100};  // doubles
constexpr int kPageSize = 500;
// For one list; a server that returns more pages repeats itself.
constexpr int kMaxPages = 10'000;
// How often a list begins again because its continue token expired.
constexpr int kMaxListRestarts = 3;
// A quiet container may print nothing for hours. A dead connection shows when the pod ends.
constexpr milliseconds kLogIdle{std::chrono::hours(24)};
// A node that has not answered by then is asked again later.
constexpr milliseconds kLogWindowDeadline{10'000};

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";
constexpr std::string_view kApplyPatch = "application/apply-patch+yaml";

bool is_success(int status) { return status >= 200 && status < 300; }

// Follows client-go's rule: only if the server says when.
bool may_retry(const HttpResponse& response) {
  return (response.status == 429 || response.status >= 500) && response.retry_after.has_value();
}

// "": query_of() leaves the parameter out.
std::string_view dry_run(const WriteOptions& options) { return options.dry_run ? "All" : ""; }

// Unknown fields cause a warning in a real write, and a refusal in a dry run.
std::string_view validation(const WriteOptions& options) { return options.dry_run ? "Strict" : ""; }

// Returns the answer if it is a success.
Result<HttpResponse> answer_of(HttpResult result, const std::string& what) {
  auto* response = std::get_if<HttpResponse>(&result);
  if (response == nullptr) {
    return Error{ErrorCode::kUnavailable, what + ": " + std::get<HttpFailure>(result).message};
  }
  if (!is_success(response->status)) return read_error(*response, what);
  return std::move(*response);
}

HttpRequest writing(std::string_view method, std::string target, std::string_view content_type,
                    const Json& body) {
  return {.method = std::string(method),
          .target = std::move(target),
          .content_type = std::string(content_type),
          .body = body.dump()};
}

}  // namespace

Client::Client(HttpTransport& transport, ClientOptions options)
    : transport_(transport),
      options_(std::move(options)),
      limiter_(options_.calls_per_second, options_.burst) {}

Client::Call Client::describe_call(std::string_view verb, const Resource& resource,
                                   const ObjectKey& key, std::string_view subresource) {
  std::string name(resource.plural);
  if (!subresource.empty()) name += '/' + std::string(subresource);
  return {verb, std::move(name), std::string(verb) + ' ' + describe(resource, key)};
}

Result<Json> Client::get(const Resource& resource, const ObjectKey& key,
                         std::string_view subresource) {
  HttpRequest request;
  request.target = path_of(resource, key.ns, key.name, subresource);
  return read(request, describe_call("get", resource, key, subresource));
}

Result<std::vector<Json>> Client::list(const Resource& resource, const std::string& ns,
                                       const ListOptions& options) {
  std::vector<Json> out;
  std::string next;
  int restarts = 0;
  for (int page = 0; page < kMaxPages; ++page) {
    HttpRequest request;
    request.target = path_of(resource, ns) + query_of({{"labelSelector", options.label_selector},
                                                       {"fieldSelector", options.field_selector},
                                                       {"limit", std::to_string(kPageSize)},
                                                       {"continue", next}});
    Result<Json> answer = read(request, describe_call("list", resource, {ns, "*"}, ""));
    // 410: the server no longer has the version of the pages so far. On the first page, kNotFound
    // means that there is no such resource.
    const bool expired =
        !answer.ok() && answer.error().code == ErrorCode::kNotFound && !next.empty();
    if (expired && ++restarts <= kMaxListRestarts) {
      out.clear();
      next.clear();
      continue;
    }
    FETTLE_ASSIGN(Json list, std::move(answer));
    next = text_at(list, {"metadata", "continue"});
    Json* items = list.find("items");
    if (items != nullptr && items->is_array()) {
      for (Json& item : items->as_array()) {
        fill_in_kind(item, resource);
        out.push_back(std::move(item));
      }
    }
    if (next.empty()) return out;
  }
  return Error{ErrorCode::kUnavailable, "list " + std::string(resource.plural) + " did not end"};
}

Result<Written> Client::create(const Resource& resource, const std::string& ns, const Json& object,
                               const WriteOptions& options) {
  std::string target = path_of(resource, ns) + query_of({{"fieldManager", options_.field_manager},
                                                         {"dryRun", dry_run(options)},
                                                         {"fieldValidation", validation(options)}});
  const ObjectKey key{ns, text_at(object, {"metadata", "name"})};
  return write(writing("POST", std::move(target), kJson, object),
               describe_call("create", resource, key, ""));
}

Result<Written> Client::update(const Resource& resource, const ObjectKey& key,
                               std::string_view subresource, const Json& object) {
  std::string target = path_of(resource, key.ns, key.name, subresource) +
                       query_of({{"fieldManager", options_.field_manager}});
  return write(writing("PUT", std::move(target), kJson, object),
               describe_call("update", resource, key, subresource));
}

Result<Written> Client::patch(const Resource& resource, const ObjectKey& key,
                              std::string_view subresource, const Json& patch) {
  std::string target = path_of(resource, key.ns, key.name, subresource) +
                       query_of({{"fieldManager", options_.field_manager}});
  return write(writing("PATCH", std::move(target), kMergePatch, patch),
               describe_call("patch", resource, key, subresource));
}

Result<Written> Client::apply(const Resource& resource, const ObjectKey& key,
                              std::string_view subresource, const Json& object,
                              std::string_view manager, const WriteOptions& options) {
  std::string target = path_of(resource, key.ns, key.name, subresource) +
                       query_of({{"fieldManager", manager},
                                 {"force", "true"},
                                 {"dryRun", dry_run(options)},
                                 {"fieldValidation", validation(options)}});
  return write(writing("PATCH", std::move(target), kApplyPatch, object),
               describe_call("apply", resource, key, subresource));
}

Status Client::remove(const Resource& resource, const ObjectKey& key,
                      const RemoveOptions& options) {
  CHECK(!options.uid.empty(), "a delete names the uid of what it deletes");
  Json preconditions = Json::object({{"uid", options.uid}});
  if (!options.resource_version.empty()) {
    preconditions.set("resourceVersion", options.resource_version);
  }
  const Json body =
      Json::object({{"kind", "DeleteOptions"},
                    {"apiVersion", "v1"},
                    {"preconditions", std::move(preconditions)},
                    {"propagationPolicy", options.foreground ? "Foreground" : "Background"}});
  const HttpRequest request = writing("DELETE", path_of(resource, key.ns, key.name), kJson, body);
  FETTLE_TRY(write(request, describe_call("delete", resource, key, "")));
  return success();
}

Status Client::read_log(const ObjectKey& pod, const LogOptions& options,
                        const std::function<bool(std::string_view line)>& on_line,
                        std::stop_token stop) {
  const Call call = describe_call("log", kPods, pod, "log");
  HttpRequest request;
  request.target =
      path_of(kPods, pod.ns, pod.name, "log") +
      query_of({{"container", options.container},
                {"follow", options.follow ? "true" : ""},
                {"tailLines", options.tail ? std::to_string(*options.tail) : ""},
                {"limitBytes", options.limit_bytes ? std::to_string(*options.limit_bytes) : ""}});
  pause(limiter_.take(now()));
  // One try: on_line may have got lines before a failure.
  const milliseconds idle = options.follow ? kLogIdle : options_.deadline;
  FETTLE_TRY(answer_of(
      timed(call, [&] { return transport_.stream(request, on_line, idle, std::move(stop)); }),
      call.what));
  return success();
}

Result<std::string> Client::read_log_window(const ObjectKey& pod, const LogWindow& window) {
  const Call call = describe_call("log", kPods, pod, "log");
  HttpRequest request;
  request.target =
      path_of(kPods, pod.ns, pod.name, "log") +
      query_of({{"container", window.container},
                {"timestamps", "true"},
                {"sinceTime", window.since_ms ? api::format_timestamp(*window.since_ms) : ""},
                {"tailLines", window.tail ? std::to_string(*window.tail) : ""},
                {"limitBytes", std::to_string(window.limit_bytes)}});
  pause(limiter_.take(now()));
  const milliseconds deadline = std::min(options_.deadline, kLogWindowDeadline);
  FETTLE_ASSIGN(
      HttpResponse response,
      answer_of(timed(call, [&] { return transport_.call(request, deadline); }), call.what));
  return std::move(response.body);
}

Result<Json> Client::read(const HttpRequest& request, const Call& call) {
  FETTLE_ASSIGN(const HttpResponse response, send(request, call));
  Result<Json> body = parse_json(response.body);
  if (body.ok()) return body;
  return Error{ErrorCode::kUnavailable,
               call.what + ": expected JSON, got " + describe_body(response)};
}

Result<Written> Client::write(const HttpRequest& request, const Call& call) {
  FETTLE_ASSIGN(HttpResponse response, send(request, call));
  Result<Json> body = parse_json(response.body);
  if (!body.ok()) {
    // The object was probably stored; only a read can tell.
    return Error{ErrorCode::kUnavailable,
                 call.what + ": outcome unknown: expected JSON, got " + describe_body(response)};
  }
  return Written{std::move(body).value(), std::move(response.warnings)};
}

// Retries until success, a final answer, or the deadline. Only reads are repeated after a network
// failure; a write is repeated only if the server refused it with Retry-After.
Result<HttpResponse> Client::send(const HttpRequest& request, const Call& call) {
  const bool reads = request.method == "GET";
  milliseconds left = options_.deadline;
  milliseconds wait = kReadRetryFirst;
  for (int retry = 0;; ++retry) {
    pause(limiter_.take(now()));  // does not count against the deadline
    const auto began = now();
    HttpResult result = timed(call, [&] { return transport_.call(request, left); });
    left -= std::chrono::ceil<milliseconds>(now() - began);
    Error error;
    if (auto* response = std::get_if<HttpResponse>(&result)) {
      if (is_success(response->status)) return std::move(*response);
      error = read_error(*response, call.what);
      if (!may_retry(*response)) return error;  // the others have a Retry-After
      wait = std::max(wait, milliseconds(*response->retry_after));
    } else {
      const auto& failure = std::get<HttpFailure>(result);
      const bool unknown = !reads && failure.maybe_done;
      error = {ErrorCode::kUnavailable,
               call.what + (unknown ? ": outcome unknown: " : ": ") + failure.message};
      if (!reads) return error;
    }
    if (retry == kMaxRetries || left <= wait) return error;  // no time for another try
    pause(wait);
    left -= wait;
    wait = std::min(wait * 2, options_.deadline);
  }
}

// Makes the call, and reports it to on_call.
HttpResult Client::timed(const Call& call, const std::function<HttpResult()>& make) const {
  const auto began = now();
  HttpResult result = make();
  if (options_.on_call) {
    const auto* response = std::get_if<HttpResponse>(&result);
    const auto took = std::chrono::ceil<std::chrono::microseconds>(now() - began);
    options_.on_call({call.verb, call.resource, response == nullptr ? 0 : response->status, took,
                      response == nullptr ? 0 : response->date_ms});
  }
  return result;
}

steady_clock::time_point Client::now() const {
  return options_.now ? options_.now() : steady_clock::now();
}

void Client::pause(std::chrono::microseconds time) const {
  if (time <= time.zero()) return;
  if (options_.pause) {
    options_.pause(std::chrono::ceil<milliseconds>(time));
  } else {
    std::this_thread::sleep_for(time);
  }
}

}  // namespace fettle::kube
