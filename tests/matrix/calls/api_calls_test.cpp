// The fault matrix of calls to the API server: crosses every row of kube/client/calls.h that a
// Study calls with every fault and with the phases of the Study in which it is called.
// FETTLE_MATRIX=shape:row text selects rows, for debugging.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

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

// Whether no Study's reconcile calls the row: beside_test.cpp drives it.
bool is_beside(const kube::ApiCall& row) {
  return row.caller == kube::Caller::kCli || row.resource.starts_with("events.k8s.io/") ||
         row.resource.starts_with("coordination.k8s.io/") ||
         row.resource.starts_with("admissionregistration.k8s.io/");
}

// A row that nothing calls is stale.
void expect_all_exercised(const Tally& tally) {
  if (std::getenv("FETTLE_MATRIX") != nullptr) return;
  for (const kube::ApiCall& row : kube::kApiCalls) {
    // Trials that outgrow their GPU need programs that do (tests/sim/gpu_memory_test.cpp), and a
    // queue changes only when a user edits it (runtime/kubernetes/run/job_queues_test.cpp).
    const bool elsewhere =
        is_beside(row) || row.purpose == "memory of a trial" || row.purpose == "another queue";
    EXPECT_TRUE(elsewhere || tally.exercised.contains(&row)) << "nothing calls " << describe(row);
  }
}

// Before its first trial, a Study whose template the API server refuses is Failed, with the
// server's message: this is the purpose of the check. template_check.h decides which refusals
// concern the template, and not the cluster.
bool refuses_template(const FaultPlan& plan) {
  const bool means_template = plan.kind == FaultKind::kBadRequest ||
                              plan.kind == FaultKind::kInvalid ||
                              plan.kind == FaultKind::kForbiddenByPolicy;
  return means_template && plan.row->purpose.starts_with("check of");
}

void expect_refused(const StudyLife& life, const StudyShape& shape, const std::string& name,
                    Tally& tally) {
  const bool is_gone = shape.loses_study && life.result().study == "deleted";
  const bool is_refused = life.result().study == "Failed" && life.result().trials.empty();
  if (is_refused || is_gone) return;
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

// A Study without a fault: its calls in each phase, and its end.
struct Usual {
  const StudyShape& shape;
  std::unique_ptr<StudyLife> life;

  bool calls(const kube::ApiCall& row, Phase phase) const {
    if (row.resource.find(shape.only) == std::string_view::npos) return false;
    const auto found = life->fault().seen.find(&row);
    if (found == life->fault().seen.end()) return false;
    // A watch that must fail is cut when the phase begins, and so begins again in each phase.
    return row.verb == "watch" || found->second.contains(phase);
  }
};

std::vector<Usual> live_without_faults(Tally& tally) {
  std::vector<Usual> out;
  for (const StudyShape& shape : study_shapes()) {
    out.push_back({shape, std::make_unique<StudyLife>(shape, FaultPlan{})});
    StudyLife& life = *out.back().life;
    life.run();
    expect_without_violation(life, shape.name + ", no fault", tally);
    for (const auto& [row, phases] : life.fault().seen) tally.exercised.insert(row);
    if (std::getenv("FETTLE_MATRIX_SHOW") == nullptr) continue;
    std::cout << shape.name << ": " << life.virtual_ms() / 1000 << " s, "
              << to_string(life.result()) << "\n";
  }
  return out;
}

void live_with(const FaultPlan& plan, const Usual& usual, Tally& tally) {
  const std::string name = usual.shape.name + ", " + describe(*plan.row) + ", " +
                           to_string(plan.kind) + ", " + to_string(plan.phase);
  if (!is_selected(name)) return;
  StudyLife life(usual.shape, plan);
  life.run();
  for (const auto& [seen, when] : life.fault().seen) tally.exercised.insert(seen);
  if (!life.fault().was_hit()) return;
  ++tally.rows;
  if (refuses_template(plan)) return expect_refused(life, usual.shape, name, tally);
  expect_without_violation(life, name, tally);
  const LifeResult& expected = usual.life->result();
  if (is_like(life.result(), expected) || !life.violations().empty()) return;
  ++tally.violations;
  ADD_FAILURE() << name
                << "\n  (e) it ended otherwise than without the fault: " << to_string(life.result())
                << "\n  instead of: " << to_string(expected);
}

// Each row and phase with every fault in one shape, which differs from row to row: the common calls
// occur in all shapes. FETTLE_MATRIX_ALL=1 (make test-all): in every shape.
constexpr std::size_t kShapesPerRow = 1;

void cross(const kube::ApiCall& row, std::size_t number, const std::vector<Usual>& all,
           Tally& tally) {
  const std::size_t most = std::getenv("FETTLE_MATRIX_ALL") != nullptr ? all.size() : kShapesPerRow;
  for (const Phase phase : {Phase::kBefore, Phase::kMiddle, Phase::kEnd}) {
    std::size_t shapes = 0;
    for (std::size_t i = 0; i < all.size() && shapes < most; ++i) {
      const Usual& usual = all[(number + i) % all.size()];
      if (!usual.calls(row, phase)) continue;
      ++shapes;
      for (int kind = 0; kind < kFaultKinds; ++kind) {
        live_with({&row, static_cast<FaultKind>(kind), phase}, usual, tally);
      }
    }
  }
}

TEST(ApiCalls, EveryCallSurvivesEveryFaultInEveryPhase) {
  Tally tally;
  const std::vector<Usual> all = live_without_faults(tally);
  std::size_t number = 0;
  for (const kube::ApiCall& row : kube::kApiCalls) cross(row, number++, all, tally);
  expect_all_exercised(tally);
  std::cout << "API calls: " << tally.rows << " rows, " << tally.violations << " violations"
            << '\n';
}

}  // namespace
}  // namespace fettle::matrix
