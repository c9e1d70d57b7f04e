// Operator: everything between the API server and the controllers, put together, started and
// stopped in the right order.
//
// Listen for probes; wait for the lease; list and watch; let the Manager work, on each namespace as
// soon as all of it was listed; and at the end stop the workers first, then the informers and the
// events, and give the lease back last, when nothing is written any more. A replica that waits for
// the lease holds no copy of the cluster: it lists anew when it takes over, so that it sees
// everything its predecessor wrote.
//
// run() is called once, by one thread; stop() by any, also before run() and more than once.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/clock.h"
#include "control/manager.h"
#include "kube/client.h"
#include "kube/event_recorder.h"
#include "kube/leader_elector.h"
#include "operator/fence.h"
#include "operator/http_server.h"
#include "operator/informers.h"
#include "operator/instruments.h"
#include "operator/options.h"
#include "runtime/kubernetes/job_runs.h"
#include "runtime/kubernetes/kube_store.h"

namespace fettle::op {

// Who and where this replica is.
struct Identity {
  std::string name;  // no two alike: the pod's name and something random
  std::string ns;    // the namespace it runs in
  std::uint64_t seed = 0;
};

class Operator {
 public:
  // `transport` is for everything but the lease, which has its own, so that renewals wait for
  // nothing. Both outlive the Operator.
  Operator(Options options, Identity identity, kube::HttpTransport& transport,
           kube::HttpTransport& lease_transport, Log& log);
  ~Operator();

  // Returns when it was asked to stop, or with an error: a port is taken, or the lease was lost.
  Status run();
  void stop();

  // The ports that were bound, for tests that ask for any (0).
  std::uint16_t metrics_port() const { return metrics_port_; }
  std::uint16_t health_port() const { return health_port_; }
  // What they answer.
  HttpAnswer answer_health(std::string_view path);
  HttpAnswer answer_metrics(std::string_view path);

 private:
  Status listen();
  // False when it was stopped first.
  bool await_lease();
  // Says what the chart would have installed and is not there.
  void look_at_policies();
  Status work();
  void say_missing();
  void shut_down();

  bool may_write() const { return !options_.leader_elect || elector_.may_write(); }
  // Whether this replica does its part, and what is to be said beside that.
  struct Readiness {
    bool ready = false;
    std::string words;
  };
  Readiness readiness();
  std::string why_stuck() const;
  kube::ClientOptions client_options();
  InformersOptions informers_options();

  const Options options_;
  const Identity identity_;
  Log& log_;
  control::SystemClock clock_;
  FencedTransport transport_;
  kube::Client client_;
  kube::Client lease_client_;
  kube::LeaderElector elector_;
  kube::EventRecorder recorder_;
  Informers informers_;
  kubernetes::KubeStore store_;
  kubernetes::JobRuns runs_;
  Instruments instruments_;
  control::Manager manager_;
  HttpServer http_;
  std::atomic<std::uint16_t> metrics_port_ = 0;
  std::atomic<std::uint16_t> health_port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> working_ = false;
};

}  // namespace fettle::op
