// For builds without Kubernetes: reports go to standard output.
#include <cstdlib>

#include "trainer/reporter/report_sink.h"

namespace fettle::trainer {

Result<std::unique_ptr<ReportSink>> make_report_sink(const api::TrialFile&, ReportSinkLog) {
  const char* wanted = std::getenv("FETTLE_REPORT");
  if (wanted == nullptr || *wanted == '\0') return std::unique_ptr<ReportSink>();
  return invalid(std::string("FETTLE_REPORT is \"") + wanted +
                 "\", and this fettle-trainer was built without a reporter; leave it unset, or "
                 "build with FETTLE_KUBE=ON");
}

}  // namespace fettle::trainer
