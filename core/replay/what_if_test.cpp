// The algorithms for which a Study's trials can answer what-if questions. Other stopping rules are
// tested with the replay of whole Studies (replay_test.cpp).
#include "core/replay/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/enum_names.h"
#include "api/study/algorithm.h"

namespace fettle::core {
namespace {

using testing::HasSubstr;

TEST(WhatIf, AnotherAlgorithmHasNoMeaningWhereTrialsTakeOver) {
  api::Study study;
  struct Case {
    const char* own;
    const char* other;
    bool has_meaning;
  };
  for (const auto& [own, other, has_meaning] :
       {Case{"tpe", "gp", true}, Case{"pbt", "tpe", false}, Case{"tpe", "pb2", false},
        Case{"pbt", "pb2", false}, Case{"schedule", "random", false}}) {
    study.spec.algorithm.name = *api::from_string<api::AlgorithmKind>(own);
    const Status can = check_what_if_algorithm(study, *api::from_string<api::AlgorithmKind>(other));
    EXPECT_EQ(can.ok(), has_meaning) << own << ' ' << other;
    if (can.ok()) continue;
    EXPECT_THAT(can.error().message, HasSubstr("take over from each other"));
  }
}

}  // namespace
}  // namespace fettle::core
