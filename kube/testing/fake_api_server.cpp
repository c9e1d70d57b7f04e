#include "kube/testing/fake_api_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/merge_patch.h"
#include "kube/objects/json_path.h"
#include "kube/testing/fake_calls.h"
#include "kube/testing/fake_target.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

HttpFailure failure(bool maybe_done, std::string message) {
  return {maybe_done, std::move(message)};
}

std::string event_line(const char* type, const Json& object) {
  return Json::object({{"type", type}, {"object", object}}).dump();
}

}  // namespace

struct FakeApiServer::Position {
  std::size_t next_change = 0;
  int bookmarks = 0;
};

FakeApiServer::FakeApiServer() = default;

FakeApiServer::~FakeApiServer() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return open_streams_ == 0; });
  CHECK(any_call_ || calls_without_row_.empty(),
        "a call without a row in kube/client/calls.h: " + *calls_without_row_.begin());
}

void FakeApiServer::record(const HttpRequest& request) {
  requests_.push_back(request.method + ' ' + request.target.substr(0, request.target.find('?')));
  if (request.method != "GET") ++writes_;
  const std::optional<CallSeen> seen = call_of(request);
  if (seen && find_row(request) == nullptr) {
    calls_without_row_.insert(seen->verb + ' ' + seen->resource);
  }
}

HttpResult FakeApiServer::call(const HttpRequest& request, milliseconds) {
  const std::lock_guard lock(mutex_);
  HttpResult result = meet(request);
  if (auto* response = std::get_if<HttpResponse>(&result)) {
    response->date_ms = objects_.now_ms();
  }
  return result;
}

HttpResult FakeApiServer::meet(const HttpRequest& request) {
  const std::optional<FakeTarget> target = parse_target(request.target);
  const std::optional<Fault> fault = next_fault(request);
  if (fault && fault->kind == Fault::Kind::kRefused) {
    return failure(false, "connection refused");
  }
  record(request);
  if (fault && fault->kind == Fault::Kind::kResetBefore) {
    return failure(true, "connection reset by peer");
  }
  if (fault && fault->kind == Fault::Kind::kAnswer) return fault->answer;
  if (!target) return status_response(404, "NotFound", "the server could not find the resource");
  HttpResponse response = answer(request, *target);
  if (fault && fault->kind == Fault::Kind::kDoubled) response = answer(request, *target);
  changed_.notify_all();
  if (fault && fault->kind == Fault::Kind::kResetAfter) {
    return failure(true, "connection reset by peer");
  }
  if (fault && fault->kind == Fault::Kind::kTruncated) {
    response.body.resize(response.body.size() / 2);
  }
  return response;
}

std::optional<Fault> FakeApiServer::next_fault(const HttpRequest& request) {
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (fault->matches && !fault->matches(request)) continue;
    if (fault->every > 0) {
      if (++fault->skip % fault->every == 0) return *fault;
      continue;
    }
    if (fault->skip-- > 0) continue;
    Fault out = *fault;
    if (--fault->times <= 0) faults_.erase(fault);
    return out;
  }
  return std::nullopt;
}

HttpResponse FakeApiServer::answer(const HttpRequest& request, const FakeTarget& target) {
  if (request.method != "GET") return answer_write(request, target);
  if (target.key.name.empty()) return answer_list(target);
  if (target.subresource == "log") return answer_log(target);
  const Json* object = objects_.find(target.collection, target.key);
  if (object != nullptr) return {200, object->dump(), {}, {}};
  return status_response(404, "NotFound",
                         target.collection + " \"" + target.key.name + "\" not found");
}

HttpResponse FakeApiServer::answer_list(const FakeTarget& target) const {
  const std::string next = target.param("continue");  // "version:objects returned so far"
  const std::int64_t version = next.empty() ? objects_.version() : leading_number(next);
  const std::size_t from =
      next.empty() ? 0 : static_cast<std::size_t>(leading_number(next.substr(next.find(':') + 1)));
  if (version < objects_.compacted()) {
    return status_response(410, "Expired", "The provided continue parameter is too old");
  }
  const std::int64_t limit = target.number_param("limit");
  Json items = Json::array();
  Json metadata = Json::object({{"resourceVersion", std::to_string(version)}});
  std::size_t at = 0;
  for (const Json& object : objects_.list(target.collection)) {
    if (!target.covers(object) || at++ < from) continue;
    if (limit > 0 && static_cast<std::int64_t>(items.as_array().size()) == limit) {
      metadata.set("continue", std::to_string(version) + ':' + std::to_string(at - 1));
      break;
    }
    Json item = object;  // the real server omits these in lists
    item.erase("kind");
    item.erase("apiVersion");
    items.push_back(std::move(item));
  }
  const Json list = Json::object({{"kind", "List"},
                                  {"apiVersion", target.api_version},
                                  {"metadata", std::move(metadata)},
                                  {"items", std::move(items)}});
  return {200, list.dump(), {}, {}};
}

HttpResponse FakeApiServer::answer_log(const FakeTarget& target) {
  if (objects_.find(target.collection, target.key) == nullptr) {
    return status_response(404, "NotFound", "pods \"" + target.key.name + "\" not found");
  }
  return logs_[target.key.ns + '/' + target.key.name + '/' + target.param("container")].window(
      target);
}

HttpResponse FakeApiServer::answer_write(const HttpRequest& request, const FakeTarget& target) {
  FakeWrite write;
  write.collection = target.collection;
  write.subresource = target.subresource;
  write.manager = target.param("fieldManager");
  write.key = target.key;
  write.dry_run = !target.param("dryRun").empty();
  if (!request.body.empty()) {
    Result<Json> body = parse_json(request.body);
    if (!body.ok() || !body->is_object()) {
      return status_response(400, "BadRequest", "the body is no JSON object");
    }
    write.body = std::move(body).value();
  }
  if (request.method == "POST") {
    write.verb = "create";
    write.key.name = text_at(write.body, {"metadata", "name"});
  } else if (request.method == "PUT") {
    write.verb = "update";
  } else if (request.method == "DELETE") {
    write.verb = "delete";
  } else if (request.content_type == "application/merge-patch+json") {
    write.verb = "patch";
  } else if (request.content_type == "application/apply-patch+yaml") {
    write.verb = "apply";
  } else {
    return status_response(415, "UnsupportedMediaType", "unsupported: " + request.content_type);
  }
  return objects_.write(write);
}

HttpResult FakeApiServer::stream(const HttpRequest& request,
                                 const std::function<bool(std::string_view line)>& on_line,
                                 milliseconds idle, std::stop_token stop) {
  const std::optional<FakeTarget> target = parse_target(request.target);
  std::unique_lock lock(mutex_);
  const std::optional<Fault> fault = next_fault(request);
  if (fault && fault->kind == Fault::Kind::kRefused) return failure(false, "connection refused");
  record(request);
  if (fault && fault->kind == Fault::Kind::kAnswer) return fault->answer;
  const bool cut_lines = fault && fault->kind == Fault::Kind::kTruncated;
  if (fault && !cut_lines) return failure(true, "connection reset by peer");
  if (!target) return status_response(404, "NotFound", "the server could not find the resource");
  const auto hand_on = [&](std::string_view line) {
    return on_line(cut_lines ? line.substr(0, line.size() / 2) : line);
  };
  ++open_streams_;
  HttpResult result = target->subresource == "log"
                          ? follow_log(*target, hand_on, stop, lock)
                          : follow_watch(*target, hand_on, idle, stop, lock);
  --open_streams_;
  changed_.notify_all();
  return result;
}

std::optional<HttpResponse> FakeApiServer::refuse_watch(const FakeTarget& target) const {
  const std::int64_t version = target.number_param("resourceVersion");
  if (version < objects_.compacted()) {
    return status_response(410, "Expired", "too old resource version");
  }
  if (version <= objects_.version()) return std::nullopt;
  HttpResponse response = status_response(504, "Timeout", "Too large resource version");
  Json body = parse_json(response.body).value();
  Json cause = Json::object({{"reason", "ResourceVersionTooLarge"}, {"message", "Too large"}});
  body.set("details", Json::object({{"causes", Json::Array{std::move(cause)}}}));
  response.body = body.dump();
  return response;
}

// Returns the lines of a watch since `position`.
std::vector<std::string> FakeApiServer::news(const FakeTarget& target, Position& position) const {
  std::vector<std::string> lines;
  const std::vector<FakeChange>& changes = objects_.changes();
  for (; position.next_change < changes.size(); ++position.next_change) {
    const FakeChange& change = changes[position.next_change];
    if (change.collection != target.collection) continue;
    const bool was = !change.before.is_null() && target.covers(change.before);
    const bool is = !change.after.is_null() && target.covers(change.after);
    if (!was && !is) continue;
    lines.push_back(event_line(!is ? "DELETED" : was ? "MODIFIED" : "ADDED", change.last));
  }
  if (position.bookmarks == bookmarks_) return lines;
  position.bookmarks = bookmarks_;
  const Json metadata = Json::object({{"resourceVersion", std::to_string(objects_.version())}});
  lines.push_back(event_line("BOOKMARK", Json::object({{"metadata", metadata}})));
  return lines;
}

HttpResult FakeApiServer::follow_watch(const FakeTarget& target,
                                       const std::function<bool(std::string_view)>& on_line,
                                       milliseconds idle, const std::stop_token& stop,
                                       std::unique_lock<std::mutex>& lock) {
  if (auto refusal = refuse_watch(target)) return *refusal;
  const std::int64_t version = target.number_param("resourceVersion");
  Position position{0, bookmarks_};
  const std::vector<FakeChange>& changes = objects_.changes();
  while (position.next_change < changes.size() &&
         changes[position.next_change].version <= version) {
    ++position.next_change;
  }
  const std::int64_t seconds = target.number_param("timeoutSeconds");
  const auto end = steady_clock::now() + std::chrono::seconds(seconds > 0 ? seconds : 1800);
  const int disconnections = disconnections_;
  ++open_watches_;
  changed_.notify_all();
  HttpResult result = HttpResponse{200, "", {}, {}};
  auto quiet_since = steady_clock::now();
  while (!stop.stop_requested() && !closed_ && steady_clock::now() < end) {
    if (disconnections_ != disconnections) {
      const std::string line = event_line("ERROR", farewell_);
      if (farewell_.is_null()) break;
      lock.unlock();
      on_line(line);
      lock.lock();
      break;
    }
    const std::vector<std::string> lines =
        cut_ ? std::vector<std::string>() : news(target, position);
    if (lines.empty()) {
      if (steady_clock::now() - quiet_since >= idle) {
        result = failure(true, "nothing came for " + std::to_string(idle.count()) + " ms");
        break;
      }
      changed_.wait_until(lock, stop, std::min(end, quiet_since + idle), [&] {
        return closed_ || disconnections_ != disconnections ||
               (!cut_ &&
                (position.next_change < changes.size() || position.bookmarks != bookmarks_));
      });
      continue;
    }
    lock.unlock();
    bool more = true;
    for (const std::string& line : lines) more = more && on_line(line);
    lock.lock();
    if (!more) break;
    quiet_since = steady_clock::now();
  }
  --open_watches_;
  return result;
}

HttpResult FakeApiServer::follow_log(const FakeTarget& target,
                                     const std::function<bool(std::string_view)>& on_line,
                                     const std::stop_token& stop,
                                     std::unique_lock<std::mutex>& lock) {
  if (objects_.find(target.collection, target.key) == nullptr) {
    return status_response(404, "NotFound", "pods \"" + target.key.name + "\" not found");
  }
  const std::string name = target.key.ns + '/' + target.key.name + '/' + target.param("container");
  const bool follow = target.param("follow") == "true";
  const std::string tail = target.param("tailLines");
  std::size_t at = 0;
  if (!tail.empty()) {
    const auto most = static_cast<std::size_t>(leading_number(tail));
    at = logs_[name].lines.size() - std::min(most, logs_[name].lines.size());
  }
  while (!stop.stop_requested() && !closed_) {
    if (at < logs_[name].lines.size()) {
      const std::string line = logs_[name].lines[at++].text;
      lock.unlock();
      const bool more = on_line(line);
      lock.lock();
      if (!more) break;
      continue;
    }
    if (!follow || logs_[name].ended) break;
    changed_.wait(lock, stop,
                  [&] { return closed_ || logs_[name].ended || at < logs_[name].lines.size(); });
  }
  return HttpResponse{200, "", {}, {}};
}

Json FakeApiServer::get(const Resource& resource, const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  const Json* object = objects_.find(collection_of(resource), key);
  return object == nullptr ? Json() : *object;
}

std::vector<Json> FakeApiServer::list(const Resource& resource) {
  const std::lock_guard lock(mutex_);
  return objects_.list(collection_of(resource));
}

Json FakeApiServer::set(const Resource& resource, const Json& object) {
  const std::lock_guard lock(mutex_);
  Json whole = object;
  whole.set("kind", resource.kind);
  whole.set("apiVersion", api_version(resource));
  Json out = objects_.set(collection_of(resource), std::move(whole));
  changed_.notify_all();
  return out;
}

Json FakeApiServer::merge(const Resource& resource, const ObjectKey& key, const Json& patch) {
  const std::lock_guard lock(mutex_);
  const Json* object = objects_.find(collection_of(resource), key);
  CHECK(object != nullptr, "merge() needs an object that exists: " + describe(resource, key));
  Json whole = *object;
  merge_patch(whole, patch);
  Json out = objects_.set(collection_of(resource), std::move(whole));
  changed_.notify_all();
  return out;
}

void FakeApiServer::remove(const Resource& resource, const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  objects_.erase(collection_of(resource), key);
  changed_.notify_all();
}

int FakeApiServer::collect_garbage() {
  const std::lock_guard lock(mutex_);
  const int collected = objects_.collect_garbage();
  changed_.notify_all();
  return collected;
}

void FakeApiServer::use_clock(std::function<std::int64_t()> now_ms) {
  const std::lock_guard lock(mutex_);
  objects_.use_clock(now_ms);
  now_ms_ = std::move(now_ms);
}

std::int64_t FakeApiServer::version() const {
  const std::lock_guard lock(mutex_);
  return objects_.version();
}

void FakeApiServer::on_validation(Validate validate) {
  const std::lock_guard lock(mutex_);
  objects_.on_validation(std::move(validate));
}

void FakeApiServer::on_admission(std::function<Status(const Admission&)> admit) {
  const std::lock_guard lock(mutex_);
  objects_.on_admission(std::move(admit));
}

void FakeApiServer::inject(Fault fault) {
  const std::lock_guard lock(mutex_);
  if (fault.every > 0) fault.skip = 0;  // counts the requests
  faults_.push_back(std::move(fault));
}

void FakeApiServer::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void FakeApiServer::send_bookmarks() {
  const std::lock_guard lock(mutex_);
  ++bookmarks_;
  changed_.notify_all();
}

void FakeApiServer::compact() {
  const std::lock_guard lock(mutex_);
  objects_.compact();
}

void FakeApiServer::disconnect_watches(const Json& in_stream_status) {
  const std::lock_guard lock(mutex_);
  farewell_ = in_stream_status;
  ++disconnections_;
  changed_.notify_all();
}

void FakeApiServer::cut_watches(bool cut) {
  const std::lock_guard lock(mutex_);
  cut_ = cut;
  changed_.notify_all();
}

bool FakeApiServer::wait_for_watches(int count, milliseconds most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [&] { return open_watches_ >= count; });
}

void FakeApiServer::append_log(const ObjectKey& pod, const std::string& container,
                               const std::string& line, std::int64_t at_ns) {
  const std::lock_guard lock(mutex_);
  if (at_ns == 0 && now_ms_) at_ns = now_ms_() * 1'000'000;
  logs_[pod.ns + '/' + pod.name + '/' + container].append(line, at_ns);
  changed_.notify_all();
}

void FakeApiServer::end_log(const ObjectKey& pod, const std::string& container) {
  const std::lock_guard lock(mutex_);
  logs_[pod.ns + '/' + pod.name + '/' + container].ended = true;
  changed_.notify_all();
}

std::vector<std::string> FakeApiServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int FakeApiServer::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

void FakeApiServer::forget_requests() {
  const std::lock_guard lock(mutex_);
  requests_.clear();
  writes_ = 0;
}

}  // namespace fettle::kube
