// The Studies of the matrix: together they make every call of the operator.
#pragma once

#include <string>
#include <vector>

#include "tests/matrix/calls/played_cluster.h"

namespace fettle::matrix {

struct StudyShape {
  std::string name;  // of the Study, too
  std::string yaml;  // documents of earlier Studies, then its own
  ClusterScript script = {};
  std::vector<std::string> gpu_profiles = {};  // of runtime/kubernetes/gpu/testdata
  // Resets in every life of this shape, even the one without a fault: the first creation of a trial
  // and of a Job is carried out, and its answer lost.
  bool loses_answers = false;
  bool loses_study = false;     // the Study is deleted in the middle, its trials are orphaned
  bool is_suspended = false;    // for a while in the middle
  std::string only = "";        // crosses only rows whose resource's name contains this
  bool has_unreadable = false;  // a Study and a Trial beside it cannot be read
};

const std::vector<StudyShape>& study_shapes();

}  // namespace fettle::matrix
