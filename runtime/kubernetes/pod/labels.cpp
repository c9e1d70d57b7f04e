#include "runtime/kubernetes/pod/labels.h"

#include "core/names.h"

namespace fettle::kubernetes {

Json inherited_labels(const kube::Job& job) {
  Json labels = Json::object();
  for (const char* const label : {core::kStudyLabel, kTrialLabel}) {
    const auto found = job.metadata.labels.find(label);
    if (found != job.metadata.labels.end()) labels.set(label, found->second);
  }
  return labels;
}

}  // namespace fettle::kubernetes
