// The Studies that the matrix lets live: together they make every call of the operator.
#pragma once

#include <string>
#include <vector>

#include "runtime/kubernetes/job_builder.h"
#include "tests/matrix/calls/played_cluster.h"

namespace fettle::matrix {

struct StudyShape {
  std::string name;  // of the Study, too
  std::string yaml;  // documents of it and of those it learns from; it is the last
  ClusterScript script = {};
  std::vector<std::string> gpu_profiles = {};  // of runtime/kubernetes/gpu/testdata
  // Resets that every life of this shape has, also the one without a fault: the first creation of a
  // trial and of a Job is done, and its answer lost.
  bool loses_answers = false;
  bool loses_study = false;     // the Study is deleted in the middle, its trials are orphaned
  bool is_suspended = false;    // for a while in the middle
  std::string only = "";        // crosses the rows whose resource has this in its name alone
  bool has_unreadable = false;  // a Study and a Trial beside it cannot be read
};

const std::vector<StudyShape>& study_shapes();

}  // namespace fettle::matrix
