#include "operator/operator.h"

#include <chrono>
#include <memory>
#include <utility>

#include "operator/policies.h"

namespace fettle::op {

namespace {

using std::chrono::milliseconds;

// Interval at which a wait checks whether to stop.
constexpr milliseconds kPollStop{250};
// Interval at which the log repeats that lists are missing.
constexpr milliseconds kLogMissingEvery{30'000};
constexpr double kUnlimited = 1e6;

kube::LeaderOptions leader_options(const Options& options, const Identity& identity, Log& log,
                                   std::function<void()> on_lost,
                                   std::function<std::string()> why_not_renew) {
  kube::LeaderOptions leader;
  leader.terms.key = {options.lease_namespace.empty() ? identity.ns : options.lease_namespace,
                      options.lease_name};
  leader.terms.identity = identity.name;
  leader.terms.times = options.lease_times;
  leader.seed = identity.seed;
  leader.on_leading = [&log] { log.info("leading"); };
  leader.on_lost = std::move(on_lost);
  leader.why_not_renew = std::move(why_not_renew);
  // Called for this replica, too, and with "" once the lease is released.
  leader.on_holder = [&log, self = identity.name](const std::string& holder) {
    if (!holder.empty() && holder != self) {
      log.info("another replica leads", {{"holder", holder}});
    }
  };
  return leader;
}

kube::EventRecorderOptions recorder_options(const Identity& identity, Log& log) {
  kube::EventRecorderOptions options;
  options.instance = identity.name;
  options.on_error = [&log](const std::string& message) {
    log.warning("event not written", {{"error", message}});
  };
  return options;
}

control::ManagerOptions manager_options(const Options& options, const Informers& informers) {
  control::ManagerOptions manager;
  manager.ready = [&informers](const std::string& ns) { return informers.complete(ns); };
  manager.trouble = [&informers](const std::string& ns) { return informers.trouble(ns); };
  manager.max_failures = 0;  // no limit: one bad object must not stop the others
  manager.workers = options.workers;
  return manager;
}

kubernetes::JobOptions job_options(const Options& options, Log& log, std::int64_t now_ms) {
  kubernetes::JobOptions out{
      .trainer_image = options.trainer_image,
      .trainer_pod = options.trainer_pod,
      .gang_timeout_ms = static_cast<std::int64_t>(options.gang_timeout * 1000),
      .start_timeout_ms = static_cast<std::int64_t>(options.start_timeout * 1000)};
  if (options.gpu_profiles.empty()) return out;
  out.gpu_catalogue = std::make_shared<kubernetes::GpuCatalogue>(
      options.gpu_profiles, [&log](bool is_wrong, const std::string& message) {
        if (is_wrong) {
          log.error("GPU profiles are wrong; those before stay in force", {{"error", message}});
        } else {
          log.info("GPU profiles are in force", {{"profiles", message}});
        }
      });
  (void)out.gpu_catalogue->profiles(now_ms);  // reports errors at once
  return out;
}

}  // namespace

kube::ClientOptions Operator::client_options() {
  kube::ClientOptions options;
  options.calls_per_second = options_.calls_per_second;
  options.burst = static_cast<int>(2 * options_.calls_per_second);
  options.on_call = [this](const kube::CallMade& call) {
    clock_.note(call);
    instruments_.on_call(call);
    manager_.note_progress();  // on the thread of the reconcile; see why_stuck()
  };
  return options;
}

// A renewal that times out leaves time for another before the lease is lost.
kube::ClientOptions Operator::lease_client_options() {
  kube::ClientOptions options;
  options.deadline = options_.lease_times.renew * 2 / 5;
  options.calls_per_second = kUnlimited;
  options.on_call = [this](const kube::CallMade& call) { clock_.note(call); };
  return options;
}

InformersOptions Operator::informers_options() {
  InformersOptions options;
  options.namespaces = options_.namespaces;
  options.seed = identity_.seed;
  options.on_call = [this](const kube::CallMade& call) {
    clock_.note(call);
    instruments_.on_call(call);
  };
  options.on_error = [this](const std::string& message) {
    log_.warning("watch failed", {{"error", message}});
  };
  return options;
}

// The lambdas refer to members that are constructed later: none is called before run().
Operator::Operator(Options options, Identity identity, kube::HttpTransport& transport,
                   kube::HttpTransport& lease_transport, Log& log)
    : options_(std::move(options)),
      identity_(std::move(identity)),
      log_(log),
      transport_(transport, [this] { return may_write(); }),
      client_(transport_, client_options()),
      lease_client_(lease_transport, lease_client_options()),
      elector_(lease_client_, leader_options(
                                  options_, identity_, log,
                                  [this] {
                                    lost_ = true;
                                    stop();
                                  },
                                  [this] { return why_stuck(); })),
      recorder_(client_, recorder_options(identity_, log)),
      informers_(transport_, informers_options()),
      store_(client_, informers_.studies.cache(), informers_.trials.cache(), clock_,
             [this](kube::Occurrence event) { recorder_.record(std::move(event)); }),
      runs_(client_, informers_.jobs.cache(), informers_.pods.cache(), store_, clock_,
            job_options(options_, log, clock_.now_ms())),
      instruments_(
          {informers_.studies.cache(), informers_.trials.cache(),
           [this] { return manager_.queue_depth(); }, [this] { return manager_.blocked(); },
           [this] { return recorder_.dropped(); }, [this] { return working_ && may_write(); },
           [this] { return manager_.oldest_reconcile_ms(); }, [this] { return runs_.gang_line(); }},
          log),
      manager_(store_, runs_, clock_, instruments_, manager_options(options_, informers_)) {
  informers_.trials.cache().on_change([this](const auto& before, const auto& after) {
    instruments_.on_trial(before.get(), after.get());
  });
}

Operator::~Operator() { shut_down(); }

void Operator::stop() {
  stopping_ = true;
  manager_.wake();
}

Status Operator::run() {
  FETTLE_TRY(listen());
  if (!await_lease()) {  // stopped as a standby
    shut_down();
    return success();
  }
  recorder_.start();
  informers_.start();
  Status worked = work();
  shut_down();
  if (lost_) return io_error("the lease was lost; another replica takes over");
  return worked;
}

Status Operator::listen() {
  FETTLE_ASSIGN(metrics_port_,
                http_.listen(options_.metrics_port, [this](const HttpRequest& request) {
                  return answer_metrics(request.path);
                }));
  FETTLE_ASSIGN(health_port_,
                http_.listen(options_.health_port, [this](const HttpRequest& request) {
                  return answer_health(request.path);
                }));
  return http_.start();
}

bool Operator::await_lease() {
  if (!options_.leader_elect) return !stopping_;
  elector_.start();
  while (!stopping_) {
    if (elector_.wait_leading(kPollStop)) return true;  // stop() does not wake it
  }
  return false;
}

// Each namespace is reconciled as soon as all its objects are listed, independently of the others.
Status Operator::work() {
  check_policies();
  working_ = true;  // from now on readiness() asks the informers, which have been started
  const auto began = std::chrono::steady_clock::now();
  auto log_at = began + kLogMissingEvery;
  bool all_seen = false;
  // Called at least once a second; true ends the reconciles.
  return manager_.run([&] {
    const auto now = std::chrono::steady_clock::now();
    if (!all_seen && informers_.missing().empty()) {
      all_seen = true;
      log_.info("working", {{"studies", std::to_string(informers_.studies.cache().size())},
                            {"trials", std::to_string(informers_.trials.cache().size())},
                            {"workers", std::to_string(options_.workers)}});
    } else if (!all_seen && now >= log_at) {
      log_at = now + kLogMissingEvery;
      log_missing();
    }
    return stopping_.load();
  });
}

void Operator::check_policies() {
  const auto missing = missing_policies(client_);
  if (!missing.ok()) {
    log_.info("cannot read the admission policies", {{"error", missing.error().message}});
    return;
  }
  instruments_.on_policies(missing->empty());
  for (const std::string& name : *missing) {
    log_.warning(
        "an admission policy is missing: pods of trials and people may write what they "
        "like into Trials; install the chart with admissionPolicies.install",
        {{"policy", name}});
  }
}

void Operator::log_missing() {
  for (const Informers::Missing& missing : informers_.missing()) {
    log_.warning("not all objects are listed, so this namespace is not reconciled",
                 {{"namespace", missing.ns.empty() ? "(all)" : missing.ns}, {"why", missing.why}});
  }
}

// Order matters: the writers have ended with work(); then their sources, and last the lease, which
// lets other replicas write.
void Operator::shut_down() {
  working_ = false;
  informers_.stop();
  runs_.stop_reading();
  recorder_.stop();
  elector_.stop();
  http_.stop();
}

// A namespace that the API server refuses to list was deleted or is not ours: the others are
// reconciled, and the text after "ok" names it.
Operator::Readiness Operator::readiness() {
  if (!working_) {
    // A standby is ready if it can read the leader's name.
    if (!options_.leader_elect) return {false, "starting"};
    const std::string nobody = elector_.holder().empty() ? "no replica leads yet" : "";
    const std::string why = elector_.last_error().value_or(nobody);  // "" = ready
    return {why.empty(), why};
  }
  Readiness out{true, ""};
  for (const Informers::Missing& missing : informers_.missing()) {
    // "": the list of the whole cluster, without which there is nothing to reconcile.
    out.ready = out.ready && missing.refused && !missing.ns.empty();
    out.words += (out.words.empty() ? "" : "\n") +
                 (missing.ns.empty() ? "the cluster" : "namespace " + missing.ns) + ": " +
                 (missing.why.empty() ? "is being listed" : missing.why);
  }
  return out;
}

// A reconcile that never returns blocks its object for good; only a restart helps. A reconcile
// whose calls return makes progress, however slow the API server is: a restart would only begin it
// again.
std::string Operator::why_stuck() const {
  const double seconds = static_cast<double>(manager_.oldest_reconcile_ms()) / 1000;
  if (seconds <= options_.reconcile_timeout_s) return "";
  return "a reconcile has got nothing done for " +
         std::to_string(static_cast<std::int64_t>(seconds)) + " seconds (--reconcile-timeout)";
}

HttpAnswer Operator::answer_health(std::string_view path) {
  const bool asks_readiness = path == "/readyz";
  if (path != "/healthz" && !asks_readiness) {
    return {404, "text/plain; charset=utf-8", "try /healthz or /readyz\n"};
  }
  const std::string stuck = why_stuck();
  // /healthz fails only if a restart would help.
  const Readiness now = asks_readiness ? readiness() : Readiness{stuck.empty(), stuck};
  const std::string first = now.ready ? "ok\n" : "";
  const std::string rest = now.words.empty() ? "" : now.words + "\n";
  return {now.ready ? 200 : 503, "text/plain; charset=utf-8", first + rest};
}

HttpAnswer Operator::answer_metrics(std::string_view path) {
  if (path != "/metrics") return {404, "text/plain; charset=utf-8", "try /metrics\n"};
  return {200, "text/plain; version=0.0.4; charset=utf-8", instruments_.text()};
}

}  // namespace fettle::op
