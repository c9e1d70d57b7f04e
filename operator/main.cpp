// fettle-operator: flags, credentials, signals; the rest is Operator.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <variant>

#include "base/thread.h"
#include "operator/check.h"
#include "operator/connection.h"
#include "operator/operator.h"
#include "operator/options.h"

namespace {

using fettle::Result;
using fettle::Status;
namespace kube = fettle::kube;
namespace op = fettle::op;

// Many threads with little work each: small stacks, and two heaps instead of one per thread.
void save_memory() {
  constexpr std::size_t kStack = 1 << 20;
  constexpr int kKeep = 1 << 20;  // unused bytes at the end of the heap are returned to the system
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_TRIM_THRESHOLD, kKeep);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  if (::pthread_attr_setstacksize(&attributes, kStack) == 0) {
    ::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_destroy(&attributes);
}

op::Identity make_identity(const std::string& ns) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);  // in a pod, the name of the pod; NUL stays last
  std::random_device entropy;
  op::Identity identity;
  identity.seed = (static_cast<std::uint64_t>(entropy()) << 32) | entropy();
  std::array<char, 17> random{};
  std::snprintf(random.data(), random.size(), "%016llx",
                static_cast<unsigned long long>(identity.seed));
  identity.name = std::string(host.data()) + "-" + random.data();
  identity.ns = ns.empty() ? "default" : ns;
  return identity;
}

// Runs the Operator on its own thread; this thread waits for signals, which all others block.
Status run_until_signal(op::Operator& program, op::Log& log, const sigset_t& signals) {
  Status outcome = fettle::success();
  std::atomic<bool> ended = false;
  const pthread_t waiter = ::pthread_self();
  FETTLE_ASSIGN(
      std::thread worker, fettle::start_thread([&] {
        try {
          outcome = program.run();
        } catch (const std::system_error& error) {  // thrown if there is no room for a thread
          outcome = fettle::no_thread(error.what());
        }
        ended = true;
        ::pthread_kill(waiter, SIGUSR1);
      }));
  int signal = 0;
  while (!ended && ::sigwait(&signals, &signal) == 0) {
    if (signal == SIGUSR1) continue;  // from the Operator's thread; meaningless from outside
    log.info("stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
    program.stop();
  }
  worker.join();
  return outcome;
}

int run(const op::Options& options, op::Log& log, const sigset_t& signals) {
  const auto fail = [&log](const char* what, const fettle::Error& error, int code) {
    log.error(what, {{"error", error.message}});
    return code;
  };
  const Result<op::Connection> connection = op::connect(options.kubeconfig);
  if (!connection.ok()) return fail("no cluster", connection.error(), op::kExitInvalid);
  const op::Identity identity = make_identity(connection->ns);
  log.info(
      "starting",
      {{"version", FETTLE_VERSION}, {"server", connection->server}, {"identity", identity.name}});
  if (options.check) {
    kube::Client client(*connection->transport, {});
    const Status works = op::check_installation(client, options, identity.ns, log);
    if (!works.ok()) return fail("it does not work", works.error(), op::kExitEnvironment);
    log.info("it works");
    return op::kExitStopped;
  }
  op::Operator program(options, identity, *connection->transport, *connection->lease_transport,
                       log);
  const Status outcome = run_until_signal(program, log, signals);
  if (!outcome.ok()) return fail("ended", outcome.error(), op::kExitEnvironment);
  log.info("stopped");
  return op::kExitStopped;
}

}  // namespace

int main(int argc, char** argv) {
  save_memory();
  sigset_t signals;
  sigemptyset(&signals);
  // SIGUSR1: the Operator's thread uses it to report its end (run_until_signal).
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const auto options = op::read_options(argc, argv);
  if (const auto* parse_exit = std::get_if<op::ParseExit>(&options)) {
    std::fputs(parse_exit->text.c_str(), parse_exit->exit_code == 0 ? stdout : stderr);
    return parse_exit->exit_code;
  }
  const auto& wanted = std::get<op::Options>(options);
  op::Log log(wanted.log_format, wanted.log_level);
  return run(wanted, log, signals);
}
