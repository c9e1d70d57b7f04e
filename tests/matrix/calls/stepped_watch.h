// SteppedWatch: an informer (kube/watch/informer.h) without its thread and in virtual time. It
// drives the same state machine (kube/watch/watcher.h) and feeds the same cache. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kube/objects/json_path.h"
#include "kube/testing/fake_api_server.h"
#include "kube/watch/cache.h"
#include "kube/watch/watch_loop.h"
#include "kube/watch/watcher.h"
#include "tests/matrix/calls/faults.h"

namespace fettle::matrix {

template <class T>
class SteppedWatch {
 public:
  using Read = std::function<Result<T>(const Json&)>;
  SteppedWatch(FaultyTransport& transport, kube::FakeApiServer& server, VirtualTime& time,
               const kube::Resource& resource, std::string selector, Read read)
      : transport_(transport),
        server_(server),
        time_(time),
        target_{.resource = resource, .ns = "", .label_selector = std::move(selector)},
        read_(std::move(read)) {}

  kube::Cache<T>& cache() { return cache_; }
  // Returns the present error of the list or watch; "" = none.
  const std::string& error() const { return error_; }
  // Like kube::WatchLoop::trouble().
  std::string trouble(std::int64_t least_ms) const {
    const std::int64_t now_ms = time_.now_ms();
    const bool good = watching_ && now_ms - began_ms_ >= kube::kGoodWatch.count();
    if (good || failing_since_ms_ == 0 || now_ms - failing_since_ms_ < least_ms) return "";
    return trouble_;
  }
  // Breaks the connection of the watch.
  void cut() {
    if (watching_) end(kube::HttpFailure{true, "connection reset by peer"});
  }

  // Carries out due actions; false if none was due.
  bool advance() {
    if (!begun_) {
      begun_ = true;
      feed(kube::Begin{});
      return true;
    }
    if (watching_) return poll();
    if (wait_until_ms_ > time_.now_ms()) return false;
    CHECK(next_.has_value(), "every step of the watcher has one next action");
    const kube::WatcherOutput next = *std::exchange(next_, std::nullopt);
    if (const auto* list = std::get_if<kube::SendList>(&next)) {
      if (list->first_page) {
        objects_.clear();
        mark_ = cache_.mark();
      }
      feed(kube::ListAnswered{transport_.call(get(list->target), kube::kListDeadline)});
    } else if (const auto* watch = std::get_if<kube::SendWatch>(&next)) {
      begin(watch->target);
    } else {
      feed(kube::Begin{});  // the wait is over
    }
    return true;
  }

 private:
  static kube::HttpRequest get(const std::string& target) {
    kube::HttpRequest request;
    request.target = target;
    return request;
  }

  void begin(const std::string& target) {
    watch_ = get(target);
    watching_ = true;
    began_ms_ = time_.now_ms();
    ending_ = false;
    ends_ms_ = time_.now_ms() + kWatchMs;
    polled_ = 0;
    const auto instead = transport_.begin_watch(watch_, kube::kWatchIdle);
    if (!instead) return;
    const auto* failure = std::get_if<kube::HttpFailure>(&*instead);
    if (failure != nullptr && failure->message.find("no answer") != std::string::npos) {
      silent_until_ms_ = time_.now_ms() + kube::kWatchIdle.count();
      return;
    }
    const auto* page = std::get_if<kube::HttpResponse>(&*instead);
    if (page != nullptr && page->status == 200) feed(kube::LineCame{page->body});
    end(*instead);
  }

  void end(kube::HttpResult result) {
    watching_ = false;
    silent_until_ms_ = 0;
    if (time_.now_ms() - began_ms_ >= kube::kGoodWatch.count()) failing_since_ms_ = 0;
    feed(kube::WatchEnded{std::move(result)});
  }

  bool poll() {
    const std::int64_t now_ms = time_.now_ms();
    if (silent_until_ms_ != 0) {
      if (now_ms < silent_until_ms_) return false;
      end(kube::HttpFailure{true, "nothing came for 150 s"});
      return true;
    }
    if (now_ms >= ends_ms_) {
      end(kube::HttpResponse{200, "", {}, {}});
      return true;
    }
    const std::int64_t version = server_.version();
    if (version == polled_) return false;
    polled_ = version;
    bool came = false;
    kube::HttpRequest request = watch_;
    const std::string from = "resourceVersion=";
    const std::size_t at = request.target.find(from) + from.size();
    request.target.replace(at, request.target.find('&', at) - at, state_.version);
    const kube::HttpResult result = server_.stream(request,
                                                   [&](std::string_view line) {
                                                     came = true;
                                                     feed(kube::LineCame{line});
                                                     return !ending_;
                                                   },
                                                   std::chrono::milliseconds(0), {});
    const auto* response = std::get_if<kube::HttpResponse>(&result);
    if (ending_ || (response != nullptr && response->status != 200)) {
      end(result);
      return true;
    }
    return came;
  }

  void feed(const kube::WatcherInput& input) {
    kube::WatcherStep done =
        kube::step(target_, std::move(state_), input, kube::SteadyTime(time_.now_ms()));
    state_ = std::move(done.state);
    for (kube::WatcherOutput& output : done.outputs) execute(output);
  }

  void execute(kube::WatcherOutput& output) {
    if (auto* page = std::get_if<kube::Listed>(&output)) {
      for (const Json& object : page->objects) {
        if (auto value = read_(object); value.ok()) objects_.push_back(std::move(value).value());
      }
    } else if (const auto* list = std::get_if<kube::ListComplete>(&output)) {
      cache_.replace(std::exchange(objects_, {}), list->version, {"", mark_});
    } else if (const auto* change = std::get_if<kube::Changed>(&output)) {
      if (auto value = read_(change->object); value.ok()) cache_.put(std::move(value).value());
    } else if (const auto* gone = std::get_if<kube::Gone>(&output)) {
      cache_.erase(kube::key_of(gone->object), kube::text_at(gone->object, {"metadata", "uid"}),
                   kube::text_at(gone->object, {"metadata", "resourceVersion"}));
    } else if (const auto* now = std::get_if<kube::Advanced>(&output)) {
      cache_.advance("", now->version);
    } else if (const auto* failed = std::get_if<kube::Failed>(&output)) {
      error_ = trouble_ = failed->message;
      if (failing_since_ms_ == 0) failing_since_ms_ = time_.now_ms();
    } else if (std::holds_alternative<kube::Recovered>(output)) {
      error_.clear();
    } else if (std::holds_alternative<kube::EndWatch>(output)) {
      ending_ = true;
    } else if (const auto* wait = std::get_if<kube::Wait>(&output)) {
      wait_until_ms_ = time_.now_ms() + wait->time.count();
      next_ = *wait;
    } else if (!std::holds_alternative<kube::Skipped>(output)) {
      wait_until_ms_ = 0;
      next_ = output;  // SendList, SendWatch
    }
  }

  static constexpr std::int64_t kWatchMs = 300'000;

  FaultyTransport& transport_;
  kube::FakeApiServer& server_;
  VirtualTime& time_;
  const kube::WatchTarget target_;
  const Read read_;
  kube::Cache<T> cache_;
  kube::WatcherState state_;
  std::optional<kube::WatcherOutput> next_;
  std::vector<T> objects_;
  std::uint64_t mark_ = 0;
  kube::HttpRequest watch_;
  bool begun_ = false;
  bool watching_ = false;
  bool ending_ = false;
  std::int64_t ends_ms_ = 0;
  std::int64_t silent_until_ms_ = 0;
  std::int64_t wait_until_ms_ = 0;
  std::int64_t polled_ = 0;
  std::string error_;
  std::string trouble_;
  std::int64_t began_ms_ = 0;
  std::int64_t failing_since_ms_ = 0;
};

}  // namespace fettle::matrix
