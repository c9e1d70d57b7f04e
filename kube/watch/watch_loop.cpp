#include "kube/watch/watch_loop.h"

#include <utility>

namespace fettle::kube {
namespace {

SteadyTime steady_now() {
  return std::chrono::duration_cast<SteadyTime>(
      std::chrono::steady_clock::now().time_since_epoch());
}

// One visitor out of several lambdas.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

WatchLoop::WatchLoop(HttpTransport& transport, WatchSink& sink, WatchTarget target,
                     std::uint64_t seed, std::function<void(const CallMade&)> on_call)
    : transport_(transport), sink_(sink), target_(std::move(target)), on_call_(std::move(on_call)) {
  state_.random = Random(seed);
}

WatchLoop::~WatchLoop() {
  request_stop();
  join();
}

void WatchLoop::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void WatchLoop::request_stop() { thread_.request_stop(); }

void WatchLoop::join() {
  if (thread_.joinable()) thread_.join();
}

bool WatchLoop::wait_listed(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, thread_.get_stop_token(), most, [&] { return listed_; });
  return listed_;
}

std::optional<std::string> WatchLoop::last_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::optional<std::string> WatchLoop::trouble(std::chrono::milliseconds least) const {
  const std::lock_guard lock(mutex_);
  const SteadyTime now = steady_now();
  // failing_since_ is reset only when a good watch ends, so the present watch counts, too.
  const bool good = watching_since_ && now - *watching_since_ >= kGoodWatch;
  if (good || !failing_since_ || now - *failing_since_ < least) return std::nullopt;
  return trouble_;
}

bool WatchLoop::is_refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void WatchLoop::run(const std::stop_token& stop) {
  feed(Begin{}, stop);
  while (!stop.stop_requested()) {
    CHECK(next_.has_value(), "every step of the watcher has one next action");
    const WatcherOutput next = *std::exchange(next_, std::nullopt);
    std::visit(Overloaded{[&](const SendList& send) { list(send, stop); },
                          [&](const SendWatch& send) { watch(send, stop); },
                          [&](const Wait& wait) { pause(wait.time, stop); },
                          [](const auto&) { CHECK(false, "not an action"); }},
               next);
  }
}

void WatchLoop::list(const SendList& send, const std::stop_token& stop) {
  if (send.first_page) sink_.list_begins();
  const SteadyTime began = steady_now();
  HttpRequest request;
  request.target = send.target;
  HttpResult result = transport_.call(request, kListDeadline);
  count("list", result, began);
  const auto* response = std::get_if<HttpResponse>(&result);
  {
    const std::lock_guard lock(mutex_);
    refused_ = response != nullptr && (response->status == 403 || response->status == 404);
  }
  feed(ListAnswered{std::move(result)}, stop);
}

void WatchLoop::watch(const SendWatch& send, const std::stop_token& stop) {
  end_watch_ = false;
  const SteadyTime began = steady_now();
  HttpRequest request;
  request.target = send.target;
  {
    const std::lock_guard lock(mutex_);
    watching_since_ = began;
  }
  HttpResult result = transport_.stream(
      request,
      [&](std::string_view line) {
        feed(LineCame{line}, stop);  // may set end_watch_
        return !end_watch_ && !stop.stop_requested();
      },
      kWatchIdle, stop);
  count("watch", result, began);
  {
    const std::lock_guard lock(mutex_);
    watching_since_.reset();
    if (steady_now() - began >= kGoodWatch) failing_since_.reset();
  }
  feed(WatchEnded{std::move(result)}, stop);
}

void WatchLoop::pause(std::chrono::milliseconds time, const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, time, [] { return false; });  // only a stop ends it early
  }
  feed(Begin{}, stop);
}

// Nothing reaches the sink after a stop was requested.
void WatchLoop::feed(const WatcherInput& input, const std::stop_token& stop) {
  if (stop.stop_requested()) return;
  WatcherStep done = step(target_, std::move(state_), input, steady_now());
  state_ = std::move(done.state);
  for (WatcherOutput& output : done.outputs) execute(output);
}

void WatchLoop::execute(WatcherOutput& output) {
  std::visit(Overloaded{[&](const Listed& page) {
                          for (const Json& object : page.objects) sink_.listed(object);
                        },
                        [&](const ListComplete& list) {
                          sink_.list_ends(list.version);
                          const std::lock_guard lock(mutex_);
                          listed_ = true;
                          changed_.notify_all();
                        },
                        [&](const Changed& change) { sink_.changed(change.object); },
                        [&](const Gone& gone) { sink_.gone(gone.object); },
                        [&](const Advanced& now) { sink_.advanced(now.version); },
                        [&](const Skipped& skipped) { log(skipped.message); },
                        [&](const Failed& failed) {
                          log(failed.message);
                          set_error(failed.message);
                        },
                        [&](const Recovered&) { set_error(std::nullopt); },
                        [&](const EndWatch&) { end_watch_ = true; },
                        // run() carries these out after the step.
                        [&](const SendList& next) { next_ = next; },
                        [&](const SendWatch& next) { next_ = next; },
                        [&](const Wait& next) { next_ = next; }},
             output);
}

void WatchLoop::log(const std::string& message) const { sink_.error(name() + ": " + message); }

void WatchLoop::set_error(const std::optional<std::string>& message) {
  const std::lock_guard lock(mutex_);
  error_ = message;
  if (!error_) return;  // a successful list does not end the trouble of its watch
  *error_ = name() + ": " + *message;
  trouble_ = *error_;
  if (!failing_since_) failing_since_ = steady_now();
}

// "trials in team".
std::string WatchLoop::name() const {
  const std::string plural(target_.resource.plural);
  return target_.ns.empty() ? plural : plural + " in " + target_.ns;
}

void WatchLoop::count(std::string_view verb, const HttpResult& result, SteadyTime began) const {
  if (!on_call_) return;
  const auto* response = std::get_if<HttpResponse>(&result);
  on_call_({verb, std::string(target_.resource.plural), response == nullptr ? 0 : response->status,
            steady_now() - began, response == nullptr ? 0 : response->date_ms});
}

}  // namespace fettle::kube
