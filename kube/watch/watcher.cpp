#include "kube/watch/watcher.h"

#include <algorithm>
#include <utility>

#include "kube/client/api_status.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

using std::chrono::milliseconds;

// Watches end by themselves after 5 to 10 minutes, to rebalance their load over API servers.
constexpr std::int64_t kWatchSeconds = 300;

bool is_transient(int code) { return code == 429 || code >= 500; }

// One transition: the new state and the outputs collected so far.
class Stepper {
 public:
  Stepper(const WatchTarget& target, WatcherState state, SteadyTime now)
      : target_(target), state_(std::move(state)), now_(now) {}

  WatcherStep take() && { return {std::move(state_), std::move(outputs_)}; }

  void operator()(const Begin&) { proceed(); }

  void operator()(const ListAnswered& answer) {
    state_.phase = WatcherState::Phase::kIdle;
    if (const auto* failure = std::get_if<HttpFailure>(&answer.result)) {
      return retry_page("cannot list: " + failure->message, milliseconds(0));
    }
    const auto& response = std::get<HttpResponse>(answer.result);
    if (response.status != 200) return list_refused(response);
    Result<Json> list = parse_json(response.body);
    if (!list.ok()) {
      return retry_page("cannot list: expected JSON, got " + describe_body(response),
                        milliseconds(0));
    }
    const std::string version = text_at(*list, {"metadata", "resourceVersion"});
    if (version.empty()) return wait(start_over("cannot list: the answer has no resourceVersion"));
    emit_page(*list);
    state_.page_tries = 0;
    state_.continue_token = text_at(*list, {"metadata", "continue"});
    if (!state_.continue_token.empty()) return send_list();
    state_.version = version;  // all pages of a list have the same
    state_.resumes = 0;
    // backoff and listed_at_once stay: a list alone does not show that its watch works.
    outputs_.emplace_back(ListComplete{version});
    recover();
    send_watch();
  }

  void operator()(const LineCame& came) {
    if (state_.ending) return;
    Result<Json> event = parse_json(came.line);
    if (!event.ok()) {
      return end_watch(resume("a line of the watch is not JSON: " + event.error().message));
    }
    const std::string type = text_at(*event, {"type"});
    Json* object = event->find("object");
    if (type == "ERROR") return watch_error(object == nullptr ? Json() : *object);  // a Status
    const bool bookmark = type == "BOOKMARK";
    if (object == nullptr ||
        !(bookmark || type == "ADDED" || type == "MODIFIED" || type == "DELETED")) {
      outputs_.emplace_back(Skipped{"event of unknown type \"" + type + "\""});
      return;
    }
    const std::string kind = text_at(*object, {"kind"});
    if (!kind.empty() && kind != target_.resource.kind) {  // a bookmark has the kind, too
      outputs_.emplace_back(
          Skipped{"event with a " + kind + ", expected a " + std::string(target_.resource.kind)});
      return;
    }
    const std::string version = text_at(*object, {"metadata", "resourceVersion"});
    if (version.empty()) return end_watch(resume("an event without a resourceVersion"));
    emit_event(bookmark, type == "DELETED", std::move(*object), version);
  }

  void operator()(const WatchEnded& ended) {
    state_.phase = WatcherState::Phase::kIdle;
    if (state_.ending) return wait(state_.pause);  // end_watch() has already decided
    if (const auto* failure = std::get_if<HttpFailure>(&ended.result)) {
      return wait(resume("watch failed: " + failure->message));
    }
    const auto& response = std::get<HttpResponse>(ended.result);
    if (response.status == 200) {
      const bool very_short = now_ - state_.began < kVeryShortWatch && !state_.saw_news;
      return very_short ? wait(resume("the watch ended at once")) : proceed();
    }
    const std::optional<ApiStatus> status = read_status(response);
    if (response.status == 410 || (status && status->list_again)) return wait(list_again());
    const std::string message = read_error(response, "cannot watch").message;
    if (!is_transient(response.status)) return wait(start_over(message));
    wait(std::max(resume(message), retry_after(response)));
  }

 private:
  void proceed() {
    if (state_.version.empty()) {
      send_list();
    } else {
      send_watch();
    }
  }

  // Without resourceVersion the list is a consistent read of the newest state.
  void send_list() {
    state_.phase = WatcherState::Phase::kListing;
    const std::string limit = std::to_string(target_.page_size);
    std::string target =
        path_of(target_.resource, target_.ns) + query_of({{"labelSelector", target_.label_selector},
                                                          {"limit", limit},
                                                          {"continue", state_.continue_token}});
    outputs_.emplace_back(SendList{std::move(target), state_.continue_token.empty()});
  }

  void send_watch() {
    state_.phase = WatcherState::Phase::kWatching;
    state_.began = now_;
    state_.saw_news = false;
    state_.ending = false;
    const auto chance = static_cast<std::int64_t>(state_.random.below(kWatchSeconds));
    const std::string seconds = std::to_string(kWatchSeconds + chance);
    outputs_.emplace_back(SendWatch{path_of(target_.resource, target_.ns) +
                                    query_of({{"watch", "true"},
                                              {"allowWatchBookmarks", "true"},
                                              {"labelSelector", target_.label_selector},
                                              {"resourceVersion", state_.version},
                                              {"timeoutSeconds", seconds}})});
  }

  void wait(milliseconds time) {
    // 0: at once, and without a Wait (list_again).
    if (time <= milliseconds(0)) return proceed();
    state_.phase = WatcherState::Phase::kWaiting;
    outputs_.emplace_back(Wait{time});
  }

  void end_watch(milliseconds pause) {
    state_.ending = true;
    state_.pause = pause;
    outputs_.emplace_back(EndWatch{});
  }

  void emit_page(Json& list) {
    Listed page;
    if (Json* items = list.find("items"); items != nullptr && items->is_array()) {
      page.objects = std::move(items->as_array());
    }
    for (Json& object : page.objects) fill_in_kind(object, target_.resource);
    outputs_.emplace_back(std::move(page));
  }

  void emit_event(bool bookmark, bool deleted, Json object, const std::string& version) {
    state_.version = version;
    state_.saw_news = true;
    state_.resumes = 0;
    state_.listed_at_once = false;
    if (bookmark) {
      // A bookmark only advances the version from which a new watch resumes.
    } else if (deleted) {
      outputs_.emplace_back(Gone{std::move(object)});
    } else {
      outputs_.emplace_back(Changed{std::move(object)});
    }
    outputs_.emplace_back(Advanced{version});
    recover();
  }

  void watch_error(const Json& object) {
    const ApiStatus status = read_status(object).value_or(ApiStatus{});
    if (status.list_again) return end_watch(list_again());
    const std::string message =
        "error within the watch: " + (status.message.empty() ? object.dump() : status.message);
    end_watch(is_transient(status.code) ? resume(message) : start_over(message));
  }

  void list_refused(const HttpResponse& response) {
    const std::optional<ApiStatus> status = read_status(response);
    if (response.status == 410 || (status && status->list_again)) return wait(list_again());
    const std::string message = read_error(response, "cannot list").message;
    if (is_transient(response.status)) return retry_page(message, retry_after(response));
    wait(std::max(start_over(message), retry_after(response)));
  }

  // Requests the same page again; a failed first page begins the whole list again. `at_least`: the
  // Retry-After of the answer, 0 without one.
  void retry_page(const std::string& message, milliseconds at_least) {
    const bool keeps = !state_.continue_token.empty() && ++state_.page_tries <= kMaxPageTries;
    wait(std::max(keeps ? fail(message) : start_over(message), at_least));
  }

  // Reactions to a failure; each returns the delay before it.

  // Watches from the same version again, unless that has failed too often.
  milliseconds resume(const std::string& message) {
    if (++state_.resumes > kMaxResumes) return start_over(message);
    return fail(message);
  }

  milliseconds start_over(const std::string& message) {
    forget_list();
    state_.resumes = 0;
    return fail(message);
  }

  // The version is too old (or too new), which is normal after a long pause. Twice in a row without
  // an event between is an error, with back-off: otherwise it would list in a tight loop.
  milliseconds list_again() {
    if (std::exchange(state_.listed_at_once, true)) {
      return start_over("the history ended again before anything new was seen");
    }
    forget_list();
    return milliseconds(0);
  }

  void forget_list() {
    state_.version.clear();
    state_.continue_token.clear();
    state_.page_tries = 0;
  }

  milliseconds fail(const std::string& message) {
    state_.failing = true;
    outputs_.emplace_back(Failed{message});
    return state_.backoff.next(target_.backoff, now_, state_.random);
  }

  void recover() {
    if (std::exchange(state_.failing, false)) outputs_.emplace_back(Recovered{});
  }

  static milliseconds retry_after(const HttpResponse& response) {
    return response.retry_after.value_or(std::chrono::seconds(0));
  }

  const WatchTarget& target_;
  WatcherState state_;
  const SteadyTime now_;
  std::vector<WatcherOutput> outputs_;
};

}  // namespace

WatcherStep step(const WatchTarget& target, WatcherState state, const WatcherInput& input,
                 SteadyTime now) {
  Stepper stepper(target, std::move(state), now);
  std::visit(stepper, input);
  return std::move(stepper).take();
}

}  // namespace fettle::kube
