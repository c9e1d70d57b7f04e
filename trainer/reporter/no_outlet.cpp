// For builds without Kubernetes: reports go to standard output.
#include <cstdlib>

#include "trainer/reporter/outlet.h"

namespace fettle::trainer {

Result<std::unique_ptr<Outlet>> make_outlet(const api::TrialFile&, OutletLog) {
  const char* wanted = std::getenv("FETTLE_REPORT");
  if (wanted == nullptr || *wanted == '\0') return std::unique_ptr<Outlet>();
  return invalid(std::string("FETTLE_REPORT is \"") + wanted +
                 "\", and this fettle-trainer was built without a reporter; leave it unset, or "
                 "build with FETTLE_KUBE=ON");
}

}  // namespace fettle::trainer
