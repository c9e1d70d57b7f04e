// Grants of a machine's resources: one row for each situation.
#include "runtime/local/run/room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fettle::local {
namespace {

using testing::HasSubstr;

Room machine_with(std::int64_t gpus, double cores = 8) {
  Room room;
  for (std::int64_t i = 0; i < gpus; ++i) {
    const std::string letter(1, static_cast<char>('A' + i));
    room.gpus.push_back({"GPU-" + letter, letter});
  }
  room.cores = cores;
  room.memory = std::int64_t{64} << 30;
  return room;
}

Claim claim_of(const std::string& study, const Need& need) {
  Claim claim;
  claim.name = study;
  claim.study = study;
  claim.user = "ann";
  claim.need = need;
  return claim;
}

Claim has(const std::string& study, const std::vector<std::string>& gpus, double cores = 0) {
  Claim claim = claim_of(study, {std::ssize(gpus), cores, 0});
  claim.granted = true;
  claim.gpus = gpus;
  return claim;
}

Claim waits(const std::string& study, const Room& room, const Need& need, std::int64_t since_us) {
  Claim claim = claim_of(study, need);
  for (const GpuName& gpu : room.gpus) claim.gpus.push_back(gpu.id);
  claim.since_us = since_us;
  return claim;
}

std::string names_of(const Grant& grant) {
  std::string names;
  for (const GpuName& gpu : grant.gpus) names += gpu.cuda;
  return names;
}

TEST(Room, GpusGoToOneRunAtATime) {
  const Room room = machine_with(3);
  const std::vector<Claim> others = {has("b", {"GPU-A"}), has("c", {"GPU-C", "GPU-elsewhere"})};
  EXPECT_EQ(names_of(grant(room, {}, waits("a", room, {2, 1, 0}, 5))), "AB");
  EXPECT_EQ(names_of(grant(room, others, waits("a", room, {1, 1, 0}, 5))), "B");
  EXPECT_EQ(grant(room, others, waits("a", room, {2, 1, 0}, 5)).shortage.text(),
            "it needs 2 GPUs, and 1 of 3 are free (study b: 1, study c: 2)");
  EXPECT_EQ(grant(room, others, waits("a", room, {0, 1, 0}, 5)).shortage.text(), "");
}

TEST(Room, TheReasonOfAWaitIsTheSameWhoeverHoldsTheRest) {
  const Room room = machine_with(3);
  const Claim wanted = waits("a", room, {3, 1, 0}, 5);
  const Shortage before = grant(room, {has("b", {"GPU-A", "GPU-B"})}, wanted).shortage;
  const Shortage after = grant(room, {has("c", {"GPU-C"})}, wanted).shortage;
  EXPECT_EQ(before.stable, "it needs 3 GPUs");
  EXPECT_EQ(before.stable, after.stable);
  EXPECT_NE(before.text(), after.text());
  EXPECT_EQ(after.in("trial a").text(),
            "trial a: it needs 3 GPUs, and 2 of 3 are free (study c: 1)");
}

TEST(Room, CoresAndMemoryAreCounted) {
  Room room = machine_with(0, 2);
  const std::vector<Claim> others = {has("b", {}, 0.5), has("c", {}, 1)};
  EXPECT_EQ(grant(room, others, waits("a", room, {0, 0.5, 0}, 5)).shortage.text(), "");
  EXPECT_EQ(grant(room, others, waits("a", room, {0, 1, 0}, 5)).shortage.text(),
            "it needs 1 core, and 0.5 of 2 are free (study b: 0.5, study c: 1)");
  Claim large = has("b", {});
  large.need.memory = std::int64_t{60} << 30;
  large.user = "bob";
  EXPECT_THAT(
      grant(room, {large}, waits("a", room, {0, 1, std::int64_t{8} << 30}, 5)).shortage.text(),
      HasSubstr("of memory, and 4.00 GiB of 64.0 GiB are free (study b of bob: 60.0 GiB, "
                "file b)"));
  EXPECT_EQ(
      grant(room, {large}, waits("a", room, {0, 1, std::int64_t{4} << 30}, 5)).shortage.text(), "");
}

TEST(Room, ARunThatAsksForMoreThanThereIsHasTheMachineAlone) {
  const Room room = machine_with(1, 2);
  const Need need = clamp({1, 16, std::int64_t{1} << 40}, room);
  EXPECT_EQ(need.cores, 2);
  EXPECT_EQ(need.memory, room.memory);
  EXPECT_EQ(grant(room, {}, waits("a", room, need, 5)).shortage.text(), "");
}

// The others run on other processors.
TEST(Room, CoresOfOthersCountWhereTheyAreOursToo) {
  Room room = machine_with(0, 2);
  room.cpus = {0, 1};
  Claim other = has("b", {}, 2);
  const struct {
    std::vector<std::int64_t> cpus;
    bool fits;
  } rows[] = {{{2, 3}, true}, {{0, 1}, false}, {{1, 2}, true}, {{}, false}};
  for (const auto& row : rows) {
    other.cpus = row.cpus;
    EXPECT_EQ(grant(room, {other}, waits("a", room, {0, 1, 0}, 5)).ok(), row.fits);
  }
}

TEST(Room, WhoWaitsLongerIsLeftWhatItLacks) {
  const Room room = machine_with(4, 4);
  const Claim one = has("b", {"GPU-A"}, 1);
  const Claim four = waits("four", room, {4, 1, 0}, 10);
  EXPECT_EQ(grant(room, {one, four}, waits("a", room, {1, 1, 0}, 9)).shortage.text(), "")
      << "it was first";
  EXPECT_THAT(grant(room, {one, four}, waits("a", room, {1, 1, 0}, 11)).shortage.text(),
              HasSubstr("it needs 1 GPU, and 0 of 4 are free"));
  // It lacks GPUs, so cores are of no use to it.
  EXPECT_EQ(grant(room, {one, four}, waits("a", room, {0, 3, 0}, 11)).shortage.text(), "");
  // A run that is about to begin takes all that it requested, and no more.
  const Claim next = waits("next", room, {1, 2, 0}, 10);
  EXPECT_EQ(names_of(grant(room, {one, next}, waits("a", room, {2, 1, 0}, 11))), "CD");
  EXPECT_THAT(grant(room, {one, next}, waits("a", room, {0, 2, 0}, 11)).shortage.text(),
              HasSubstr("2 cores"));
}

TEST(Room, ManyHoldersAreNotAllNamed) {
  std::vector<Claim> others;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) others.push_back(has(name, {}, 1));
  EXPECT_EQ(holders(others, Resource::kCores, "ann"),
            "study a: 1, study b: 1, study c: 1, study d: 1, others");
}

}  // namespace
}  // namespace fettle::local
