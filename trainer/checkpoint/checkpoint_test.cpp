#include "trainer/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "trainer/checkpoint/checkpoint_store.h"
#include "trainer/testing/synthetic.h"

namespace {

// The largest block that this program has allocated, in bytes.
std::size_t& largest_allocation() {
  static std::size_t bytes = 0;
  return bytes;
}

}  // namespace

// The standard library also allocates without exceptions (std::stable_partition) and frees such
// blocks by the same `operator delete`, so both forms of `operator new` are replaced.
// NOLINTBEGIN
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  largest_allocation() = std::max(largest_allocation(), bytes);
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  largest_allocation() = std::max(largest_allocation(), bytes);
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND

namespace fettle::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Checkpoint example(std::int64_t updates = 7, Position position = {2, 0}) {
  Checkpoint checkpoint;
  checkpoint.layout = "linear 784 to 10; ";
  checkpoint.settings = Json::object({{"seed", 3}});
  checkpoint.data = Json::object({{"train", Json::object({{"samples", 600}})}});
  checkpoint.position = position;
  checkpoint.updates = updates;
  checkpoint.sums = {0.1 + 0.2, 640};
  checkpoint.loss_scale = {.scale = 32768, .good_steps = 1234, .skipped_steps = 3};
  checkpoint.metrics = Json::object({{"validation_accuracy", 0.875}});
  checkpoint.int8_ranges = {-0.1F, 3.25F, 0, 1e-7F};
  checkpoint.weights = {1.5F, -0.0F, 1e-40F};
  checkpoint.statistics = {2};
  checkpoint.state1 = {3, 4, 5};
  return checkpoint;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const auto back = decode_checkpoint(encode_checkpoint(example()), "file");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, example());
}

TEST(Checkpoint, ItsPartsAreItsFileWithoutACopy) {
  const Checkpoint checkpoint = example();
  const CheckpointParts parts = encode_in_parts(checkpoint);
  std::string file = parts.head;
  for (const std::string_view array : parts.arrays) file += array;
  EXPECT_EQ(file, encode_checkpoint(checkpoint));
  EXPECT_EQ(static_cast<const void*>(parts.arrays[0].data()), checkpoint.weights.data());
}

TEST(Checkpoint, EveryCutIsNoticed) {
  const std::string whole = encode_checkpoint(example());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto cut = decode_checkpoint(std::string_view(whole).substr(0, size), "file");
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_THAT(cut.error().message, HasSubstr("file is cut short"));
  }
}

TEST(Checkpoint, EveryFlippedByteIsNoticed) {
  const std::string whole = encode_checkpoint(example());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    EXPECT_FALSE(decode_checkpoint(flipped, "file").ok()) << "byte " << i;
  }
}

TEST(Checkpoint, SaysWhatIsWrong) {
  EXPECT_THAT(decode_checkpoint(std::string(100, 'x'), "file").error().message,
              HasSubstr("file is no checkpoint of fettle-trainer"));
  std::string newer = encode_checkpoint(example());
  newer[8] = 9;
  EXPECT_THAT(decode_checkpoint(newer, "file").error().message,
              HasSubstr("file has version 9; this fettle-trainer reads version 1"));
  std::string damaged = encode_checkpoint(example());
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_THAT(decode_checkpoint(damaged, "file").error().message, HasSubstr("is damaged"));
  EXPECT_THAT(decode_checkpoint(encode_checkpoint(example()) + "x", "file").error().message,
              HasSubstr("file is too long: it has "));
}

class CheckpointStoreTest : public testing::Test {
 protected:
  std::vector<std::string> names() {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
};

TEST_F(CheckpointStoreTest, WritesWithoutACopyOfTheArrays) {
  Checkpoint large = example();
  large.weights.assign(1 << 20, 1);
  largest_allocation() = 0;
  ASSERT_TRUE(store_.save(large).ok());
  EXPECT_LT(largest_allocation(), 1U << 20) << "of 4 MiB";
  largest_allocation() = 0;
  EXPECT_EQ(store_.newest()->checkpoint, large);
  EXPECT_LE(largest_allocation(), 4U << 20) << "nor is it read into another";
}

TEST_F(CheckpointStoreTest, KeepsTheNewestFew) {
  for (std::int64_t i = 8; i <= 11; ++i) {
    ASSERT_TRUE(store_.save(example(i, {i, 0})).ok());
  }
  EXPECT_THAT(names(),
              ElementsAre("update-10.epoch-10.checkpoint", "update-11.epoch-11.checkpoint"));
  EXPECT_EQ(store_.newest()->checkpoint, example(11, {11, 0}));
}

// In fp16 every step of an epoch may be skipped, which leaves the number of updates unchanged.
TEST_F(CheckpointStoreTest, OfAsManyUpdatesThoseOfLaterEpochsAreNewer) {
  for (std::int64_t epoch = 1; epoch <= 9; ++epoch) {
    ASSERT_TRUE(store_.save(example(5, {epoch, 0})).ok());
  }
  EXPECT_THAT(names(), ElementsAre("update-5.epoch-8.checkpoint", "update-5.epoch-9.checkpoint"));
  EXPECT_EQ(store_.newest()->checkpoint, example(5, {9, 0}));
}

// Also a checkpoint within an epoch: it is newer than the whole epoch before it, but not than the
// next.
TEST_F(CheckpointStoreTest, OfAsManyUpdatesTheOneJustWrittenStays) {
  const Position positions[] = {{4, 0}, {4, 128}, {5, 0}};
  for (const std::int64_t kept : {1, 2, 3}) {
    const TemporaryDirectory directory;
    const CheckpointStore store(directory.path(), {kept, 0, {}});
    for (const Position& position : positions) {
      const auto path = store.save(example(5, position));
      ASSERT_TRUE(path.ok());
      EXPECT_TRUE(std::filesystem::exists(*path)) << kept << " kept, " << *path;
      const auto found = store.newest();
      EXPECT_EQ(found->path, *path);
      EXPECT_EQ(found->checkpoint, example(5, position));
    }
  }
}

TEST_F(CheckpointStoreTest, WhatFollowsADamagedOneStays) {
  const CheckpointStore store(directory_.path(), {1, 0, {}});
  ASSERT_TRUE(write_file(directory_.file("update-3.epoch-3.checkpoint"), "garbage").ok());
  ASSERT_TRUE(store.save(example(2, {2, 0})).ok());
  EXPECT_THAT(names(), ElementsAre("update-2.epoch-2.checkpoint"));
}

// In a population, others may still start from this trial's state of one or two intervals ago.
TEST_F(CheckpointStoreTest, KeepsTheNewestAtRungsBesides) {
  const CheckpointStore store(directory_.path(), {1, 2, {2, 4, 6, 8}});
  for (std::int64_t epoch = 1; epoch <= 7; ++epoch) {
    ASSERT_TRUE(store.save(example(epoch, {epoch, 0})).ok());
  }
  EXPECT_THAT(names(), ElementsAre("update-4.epoch-4.checkpoint", "update-6.epoch-6.checkpoint",
                                   "update-7.epoch-7.checkpoint"));
}

TEST_F(CheckpointStoreTest, SkipsADamagedOneAndSaysSo) {
  ASSERT_TRUE(store_.save(example(1)).ok());
  const std::string newer = *store_.save(example(2, {2, 128}));
  ASSERT_TRUE(write_file(newer, read_file(newer)->substr(0, 50)).ok());
  const auto found = store_.newest();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->checkpoint->updates, 1);
  EXPECT_THAT(found->skipped, ElementsAre(HasSubstr("update-2.checkpoint is cut short")));
}

TEST_F(CheckpointStoreTest, RefusesToStartOverWhenAllAreDamaged) {
  ASSERT_TRUE(write_file(directory_.file("update-1.epoch-1.checkpoint"), "garbage").ok());
  const auto found = store_.newest();
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr("none of the checkpoints in"));
  EXPECT_THAT(found.error().message, HasSubstr("remove the directory to start from the beginning"));
}

TEST_F(CheckpointStoreTest, AMissingOrEmptyDirectoryHasNone) {
  EXPECT_FALSE(store_.newest()->checkpoint);
  EXPECT_FALSE(CheckpointStore(directory_.file("missing")).newest()->checkpoint);
  EXPECT_FALSE(CheckpointStore("").newest()->checkpoint);
  EXPECT_EQ(*CheckpointStore("").save(example()), "");
}

TEST_F(CheckpointStoreTest, FindsTheEndOfAnEpoch) {
  ASSERT_TRUE(store_.save(example(8, {4, 0})).ok());
  ASSERT_TRUE(store_.save(example(9, {4, 128})).ok());
  EXPECT_EQ(store_.at_epoch(4)->updates, 8);
  EXPECT_THAT(store_.at_epoch(3).error().message, HasSubstr("no checkpoint of step 3"));
}

TEST_F(CheckpointStoreTest, RemovesWhatAKilledWriterLeft) {
  ASSERT_TRUE(write_file(directory_.file("update-3.checkpoint.tmp99"), "half").ok());
  ASSERT_TRUE(write_file(directory_.file("notes.txt"), "mine").ok());
  ASSERT_TRUE(store_.save(example(4, {4, 0})).ok());
  EXPECT_THAT(names(), ElementsAre("notes.txt", "update-4.epoch-4.checkpoint"));
}

// ---- Two processes on one directory ------------------------------------------------------------

class CheckpointFenceTest : public CheckpointStoreTest {
 protected:
  CheckpointStore store_of(std::int64_t run, const std::string& owner) {
    auto fence = CheckpointFence::claim(directory_.path(), run, owner);
    EXPECT_TRUE(fence.ok()) << fence.error().message;
    return CheckpointStore(directory_.path(), {}, *std::move(fence));
  }
  static void expect_refused(const CheckpointStore& store, const std::string& by) {
    const auto saved = store.save(example(9, {9, 0}));
    ASSERT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().code, ErrorCode::kConflict);
    EXPECT_THAT(saved.error().message, HasSubstr(by));
  }
};

TEST_F(CheckpointFenceTest, OneThatSleptWritesNothingAfterAnotherRunTookOver) {
  const CheckpointStore slept = store_of(1, "pod a");
  ASSERT_TRUE(slept.save(example(1, {1, 0})).ok());
  const CheckpointStore next = store_of(2, "pod b");
  expect_refused(slept, "belong to run 2 of the trial now (pod b)");
  ASSERT_TRUE(next.save(example(2, {2, 0})).ok());
  expect_refused(slept, "pod b");
  EXPECT_THAT(names(), ElementsAre("owner-1-1", "owner-2-1", "update-1.epoch-1.checkpoint",
                                   "update-2.epoch-2.checkpoint"));
}

TEST_F(CheckpointFenceTest, OfOneRunThePodThatCameLastOwnsIt) {
  const CheckpointStore first = store_of(3, "pod a");
  const CheckpointStore second = store_of(3, "pod b");
  expect_refused(first, "run 3 of the trial now (pod b)");
  EXPECT_TRUE(second.save(example(1)).ok());
  EXPECT_THAT(names(), ElementsAre("owner-3-2", "update-1.epoch-2.checkpoint"));
}

// After `rm -r`, which the trainer itself advises, the numbers start again.
TEST_F(CheckpointFenceTest, OneWhoseClaimWasRemovedOwnsNothing) {
  (void)store_of(1, "pod a");
  const CheckpointStore slept = store_of(1, "pod b");  // number 2
  std::filesystem::remove_all(directory_.path());
  std::filesystem::create_directory(directory_.path());
  expect_refused(slept, "owner-1-2, by which this process owned its checkpoints, is gone");
  const CheckpointStore next = store_of(1, "pod c");  // number 1
  expect_refused(slept, "is gone");
  EXPECT_TRUE(next.save(example(1)).ok());
}

TEST_F(CheckpointFenceTest, AnEarlierRunDoesNotTakeOver) {
  const CheckpointStore later = store_of(2, "pod b");
  const auto earlier = CheckpointFence::claim(directory_.path(), 1, "pod a");
  ASSERT_FALSE(earlier.ok());
  EXPECT_EQ(earlier.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(later.save(example(1)).ok());
}

TEST_F(CheckpointFenceTest, OfManyThatClaimAtOnceOneOwnsIt) {
  std::vector<std::optional<CheckpointFence>> fences(8);
  {
    std::vector<std::jthread> claimants;
    for (auto& fence : fences) {
      claimants.emplace_back([&] {
        auto claimed = CheckpointFence::claim(directory_.path(), 0, "one of many");
        if (claimed.ok()) fence.emplace(*std::move(claimed));
      });
    }
  }
  EXPECT_EQ(std::ranges::count_if(fences, [](const auto& f) { return f && f->check().ok(); }), 1);
}

TEST_F(CheckpointFenceTest, ADirectoryThatCannotBeWrittenIsNamed) {
  const auto claimed = CheckpointFence::claim("/proc/none", 0, "me");
  ASSERT_FALSE(claimed.ok());
  EXPECT_THAT(claimed.error().message, HasSubstr("/proc/none"));
}

TEST_F(CheckpointStoreTest, AFullDiskLosesNothing) {
  ASSERT_TRUE(store_.save(example(1)).ok());
  // A limit on file sizes makes write() fail halfway, as a full disk does.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tiny{64, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  const auto saved = store_.save(example(2));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("cannot write " + directory_.path()));
  EXPECT_EQ(saved.error().code, ErrorCode::kIo);
  EXPECT_THAT(names(), ElementsAre("update-1.epoch-2.checkpoint"));
  EXPECT_EQ(store_.newest()->checkpoint->updates, 1);
}

}  // namespace
}  // namespace fettle::trainer
