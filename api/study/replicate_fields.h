// The fields of a Study document that are about replicates (study.h), for study_fields.h.
#pragma once

#include "api/fields/field.h"
#include "api/study/study.h"
#include "api/study/study_rules.h"

namespace fettle::api {

template <class Visitor, Like<Replicates> T>
void visit_fields(Visitor& v, T& c) {
  v.field("leaders", c.leaders, "Number of configurations to run again: the best ones.",
          whole(1, kMostLeaders));
  v.field("runs", c.runs, "Number of further runs of each of them.",
          whole(1, kMostReplicates).needed());
}

template <class Visitor, Like<ReplicateResults> T>
void visit_fields(Visitor& v, T& c) {
  v.field("runs", c.runs, "Number of replicates with a feasible result.", whole(0, kLargestWhole));
  v.field("mean", c.mean,
          "Mean objective value of these replicates. The value of the repeated trial itself is not "
          "included.",
          number(-kLargestBound, kLargestBound));
  v.field("deviation", c.deviation, "Sample standard deviation of these values.",
          number(0, kLargestBound));
  v.field("failed", c.failed, "Number of replicates that failed or were infeasible.",
          whole(0, kLargestWhole));
}

}  // namespace fettle::api
