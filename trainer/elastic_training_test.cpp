#include "trainer/elastic_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace fettle::trainer {
namespace {

using testing::HasSubstr;
using Environment = std::map<std::string, std::string>;

Result<std::optional<WorkerPlace>> place(const Environment& variables, bool open = false) {
  return place_of_worker(
      [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      open);
}

const Environment kSecondOfThree = {{"WORLD_SIZE", "3"},
                                    {"RANK", "1"},
                                    {"MASTER_ADDR", "s-0-r0-0.s-0-r0"},
                                    {"MASTER_PORT", "29500"}};

TEST(PlaceOfWorker, IsThatOfPyTorchsPrograms) {
  const auto found = place(kSecondOfThree);
  ASSERT_TRUE(found.ok() && *found);
  const RendezvousRequest& rendezvous = (*found)->rendezvous;
  EXPECT_EQ(rendezvous.rank, 1);
  EXPECT_EQ(rendezvous.world_size, 3);
  EXPECT_EQ(to_string(rendezvous.master), "s-0-r0-0.s-0-r0:29500");
  EXPECT_EQ(rendezvous.token, "");
  EXPECT_FALSE(rendezvous.open);
  EXPECT_EQ(rendezvous.timeout, std::chrono::seconds(300));
}

TEST(PlaceOfWorker, AMeetingWithoutLimitSaysNothingOfLaterAnswers) {
  Environment variables = kSecondOfThree;
  variables["FETTLE_RENDEZVOUS_SECONDS"] = "0";
  const RendezvousRequest rendezvous = (*place(variables))->rendezvous;
  EXPECT_TRUE(rendezvous.patient);
  EXPECT_EQ(rendezvous.timeout, std::chrono::seconds(300));
  variables["FETTLE_RENDEZVOUS_SECONDS"] = "7";
  EXPECT_FALSE((*place(variables))->rendezvous.patient);
  EXPECT_EQ((*place(variables))->rendezvous.timeout, std::chrono::seconds(7));
}

TEST(PlaceOfWorker, ALongMeetingSaysNothingOfLaterAnswers) {
  Environment variables = kSecondOfThree;
  variables["FETTLE_RENDEZVOUS_SECONDS"] = "900";
  const RendezvousRequest rendezvous = (*place(variables))->rendezvous;
  EXPECT_EQ(rendezvous.meeting, std::chrono::seconds(900));
  EXPECT_EQ(rendezvous.timeout, std::chrono::seconds(300));
}

TEST(PlaceOfWorker, OneAloneHasNone) {
  EXPECT_FALSE(*place({}));
  EXPECT_FALSE(*place({}, true));
  EXPECT_FALSE(*place({{"WORLD_SIZE", "1"}}));
}

TEST(PlaceOfWorker, OneToWhomOthersMayComeHasOne) {
  Environment variables = kSecondOfThree;
  variables["WORLD_SIZE"] = "1";
  variables["RANK"] = "4";  // one that joins later
  const auto found = place(variables, true);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->rendezvous.rank, 4);
  EXPECT_TRUE((*found)->rendezvous.open);
}

TEST(PlaceOfWorker, WhatIsMissingOrWrongIsNamed) {
  const struct {
    const char* name;
    const char* value;  // nullptr: not set
    const char* said;
  } cases[] = {
      {"RANK", nullptr, "RANK is not set, expected a whole number from 0 to 2"},
      {"RANK", "3", "RANK is \"3\", expected a whole number from 0 to 2"},
      {"RANK", "1x", "RANK is \"1x\""},
      {"WORLD_SIZE", "0", "WORLD_SIZE is \"0\", expected a whole number from 1 to 1024"},
      {"MASTER_ADDR", nullptr, "MASTER_ADDR is not set, expected the host of rank 0"},
      {"MASTER_PORT", "99999", "MASTER_PORT is \"99999\", expected a whole number from 1 to 65535"},
      {"FETTLE_COLLECTIVE_SECONDS", "-1", "FETTLE_COLLECTIVE_SECONDS is \"-1\""},
  };
  for (const auto& c : cases) {
    Environment variables = kSecondOfThree;
    variables.erase(c.name);
    if (c.value != nullptr) variables[c.name] = c.value;
    const auto refused = place(variables);
    ASSERT_FALSE(refused.ok()) << c.said;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr(c.said));
  }
}

}  // namespace
}  // namespace fettle::trainer
