// A build without libgloo.
#include "trainer/parallel/gloo_collective.h"

namespace fettle::trainer {

Result<std::unique_ptr<Collective>> make_gloo_collective(Membership&, std::chrono::milliseconds) {
  return invalid(
      "this fettle-trainer was built without Gloo, which workers on CPUs add up with; install "
      "libgloo-dev and build again, or train with one worker");
}

}  // namespace fettle::trainer
