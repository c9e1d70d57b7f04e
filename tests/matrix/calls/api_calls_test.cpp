// The fault matrix of calls to the API server: every row of kube/calls.h that a Study makes,
// crossed with every fault and with the phases of the Study in which it is called.
// FETTLE_MATRIX=shape:row text selects rows, for debugging.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "kube/testing/fake_calls.h"
#include "tests/matrix/calls/study_life.h"

namespace fettle::matrix {
namespace {

bool is_selected(const std::string& name) {
  const char* wanted = std::getenv("FETTLE_MATRIX");
  return wanted == nullptr || name.find(wanted) != std::string::npos;
}

struct Tally {
  int rows = 0;
  int violations = 0;
  std::set<const kube::ApiCall*> exercised;
};

// Rows that no Study's reconcile calls: beside_test.cpp drives them.
bool is_beside(const kube::ApiCall& row) {
  return row.caller == kube::Caller::kCli || row.resource.starts_with("events.k8s.io/") ||
         row.resource.starts_with("coordination.k8s.io/") ||
         row.resource.starts_with("admissionregistration.k8s.io/");
}

// A row that nothing calls is stale.
void expect_all_exercised(const Tally& tally) {
  if (std::getenv("FETTLE_MATRIX") != nullptr) return;
  for (const kube::ApiCall& row : kube::kApiCalls) {
    // Trials that grow out of their GPU need programs that do: tests/sim/gpu_memory_test.cpp.
    const bool elsewhere = is_beside(row) || row.purpose == "memory of a trial";
    EXPECT_TRUE(elsewhere || tally.exercised.contains(&row)) << "nothing calls " << describe(row);
  }
}

// Before its first trial a Study whose template the API server refuses is Failed, in the server's
// words: that is what the check is for. Which refusals mean the template, and not the cluster, is
// template_check.h's to say.
bool refuses_template(const FaultPlan& plan) {
  const bool means_template = plan.kind == FaultKind::kBadRequest ||
                              plan.kind == FaultKind::kInvalid ||
                              plan.kind == FaultKind::kForbiddenByPolicy;
  return means_template && plan.row->purpose.starts_with("check of");
}

void expect_refused(const StudyLife& life, const std::string& name, Tally& tally) {
  if (life.result().study == "Failed" && life.result().trials.empty()) return;
  ++tally.violations;
  ADD_FAILURE() << name
                << "\n  a refused template does not fail the Study: " << to_string(life.result());
}

void expect_without_violation(const StudyLife& life, const std::string& name, Tally& tally) {
  if (life.violations().empty()) return;
  ++tally.violations;
  for (const std::string& what : life.violations()) {
    ADD_FAILURE() << name << "\n  " << what.substr(0, 900);
  }
}

void cross(const StudyShape& shape, Tally& tally) {
  StudyLife usual(shape, {});
  usual.run();
  expect_without_violation(usual, shape.name + ", no fault", tally);
  if (std::getenv("FETTLE_MATRIX_SHOW") != nullptr) {
    std::cout << shape.name << ": " << usual.virtual_ms() / 1000 << " s, "
              << to_string(usual.result()) << "\n";
  }
  for (const auto& [row, phases] : usual.fault().seen) {
    tally.exercised.insert(row);
    if (row->resource.find(shape.only) == std::string_view::npos) continue;
    if (std::getenv("FETTLE_MATRIX_SHOW") != nullptr) std::cout << "  " << describe(*row) << "\n";
    for (const Phase phase : phases) {
      for (int kind = 0; kind < kFaultKinds; ++kind) {
        const FaultPlan plan{row, static_cast<FaultKind>(kind), phase};
        const std::string name = shape.name + ", " + describe(*row) + ", " + to_string(plan.kind) +
                                 ", " + to_string(phase);
        if (!is_selected(name)) continue;
        StudyLife life(shape, plan);
        life.run();
        for (const auto& [seen, when] : life.fault().seen) tally.exercised.insert(seen);
        if (!life.fault().was_hit()) continue;
        ++tally.rows;
        if (refuses_template(plan)) {
          expect_refused(life, name, tally);
          continue;
        }
        expect_without_violation(life, name, tally);
        if (is_like(life.result(), usual.result()) || !life.violations().empty()) continue;
        ++tally.violations;
        ADD_FAILURE() << name << "\n  (e) it ended otherwise than without the fault: "
                      << to_string(life.result())
                      << "\n  instead of: " << to_string(usual.result());
      }
    }
  }
}

TEST(ApiCalls, EveryCallSurvivesEveryFaultInEveryPhase) {
  Tally tally;
  const auto began = std::chrono::steady_clock::now();
  for (const StudyShape& shape : study_shapes()) cross(shape, tally);
  expect_all_exercised(tally);
  const auto took =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began);
  std::cout << "API calls: " << tally.rows << " rows, " << tally.violations << " violations ("
            << took.count() << " s)" << std::endl;
}

}  // namespace
}  // namespace fettle::matrix
