// Variables that distinguish the ranks of a worker with several GPUs.
#include "trainer/parallel/worker_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace fettle::trainer {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;
using Environment = std::map<std::string, std::string>;

const Meeting kAlone = {{"127.0.0.1", 4711}, "secret"};

Result<std::vector<Variables>> ranks(const Environment& environment, std::int64_t gpus) {
  return rank_variables(
      [&environment](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      gpus, kAlone);
}

std::string error(const Environment& environment, std::int64_t gpus) {
  const auto found = ranks(environment, gpus);
  return found.ok() ? "" : found.error().message;
}

TEST(RanksOfAWorker, OneThatIsAloneMeetsItselfOnTheLoopback) {
  const auto found = ranks({}, 2);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2U);
  EXPECT_THAT((*found)[1], testing::UnorderedElementsAre(
                               Pair("RANK", "1"), Pair("WORLD_SIZE", "2"), Pair("LOCAL_RANK", "1"),
                               Pair("LOCAL_WORLD_SIZE", "2"), Pair("CUDA_VISIBLE_DEVICES", "1"),
                               Pair("MASTER_ADDR", "127.0.0.1"), Pair("MASTER_PORT", "4711"),
                               Pair("FETTLE_RENDEZVOUS_TOKEN", "secret")));
}

TEST(RanksOfAWorker, OneOfSeveralHasTheRanksOfItsPlaceAmongThem) {
  const auto found = ranks({{"WORLD_SIZE", "3"}, {"RANK", "1"}, {"MASTER_ADDR", "there"}}, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0], IsSupersetOf({Pair("RANK", "2"), Pair("WORLD_SIZE", "6")}));
  EXPECT_THAT((*found)[1], IsSupersetOf({Pair("RANK", "3"), Pair("LOCAL_RANK", "1")}));
  EXPECT_THAT((*found)[0], Not(Contains(Key("MASTER_ADDR")))) << "stays as it is";
}

TEST(RanksOfAWorker, OneThatComesLaterHasARankBeyondTheWorld) {
  const auto found = ranks({{"WORLD_SIZE", "1"}, {"RANK", "3"}}, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0], IsSupersetOf({Pair("RANK", "6"), Pair("WORLD_SIZE", "2")}));
}

TEST(RanksOfAWorker, EachHasOneOfTheVisibleGpus) {
  const auto found = ranks({{"CUDA_VISIBLE_DEVICES", "5,GPU-1f,2"}}, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT((*found)[0], Contains(Pair("CUDA_VISIBLE_DEVICES", "5")));
  EXPECT_THAT((*found)[1], Contains(Pair("CUDA_VISIBLE_DEVICES", "GPU-1f")));
}

TEST(RanksOfAWorker, WhatCannotBeIsSaid) {
  EXPECT_THAT(error({{"CUDA_VISIBLE_DEVICES", "5"}}, 2),
              HasSubstr("is to have 2 GPUs, but CUDA_VISIBLE_DEVICES is \"5\""));
  EXPECT_THAT(error({{"CUDA_VISIBLE_DEVICES", "5,-1,6"}}, 2), HasSubstr("is to have 2 GPUs"));
  EXPECT_THAT(error({{"CUDA_VISIBLE_DEVICES", ""}}, 2), HasSubstr("is to have 2 GPUs"));
  EXPECT_THAT(error({{"WORLD_SIZE", "513"}, {"RANK", "0"}}, 2), HasSubstr("from 1 to 512"));
  EXPECT_THAT(error({{"WORLD_SIZE", "2"}}, 2), HasSubstr("RANK is not set"));
}

}  // namespace
}  // namespace fettle::trainer
