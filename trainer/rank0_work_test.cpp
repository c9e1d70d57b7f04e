#include "trainer/rank0_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <vector>

namespace fettle::trainer {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

// One worker of two, with given broadcasts.
class Broadcasts final : public Collective {
 public:
  Broadcasts(std::int64_t rank, std::function<Status(std::byte&)> broadcast)
      : rank_(rank), broadcast_(std::move(broadcast)) {}
  std::int64_t world_size() const override { return 2; }
  std::int64_t rank() const override { return rank_; }
  Status sum(std::span<float>) override { return success(); }
  Status sum(std::span<double>) override { return success(); }
  Status broadcast(std::span<std::byte> bytes) override { return broadcast_(bytes[0]); }

 private:
  const std::int64_t rank_;
  const std::function<Status(std::byte&)> broadcast_;
};

void no_log(const std::string&) {}

TEST(Rank0Work, TheOthersHearOfItWhileItIsUnderWay) {
  std::latch heard(3);
  std::vector<int> said;
  Broadcasts rank0(0, [&](std::byte& word) {
    said.push_back(static_cast<int>(word));
    if (said.size() <= 3) heard.count_down();
    return success();
  });
  bool done = false;
  const auto work = [&] {
    heard.wait();
    done = true;
  };
  EXPECT_TRUE(do_at_rank0(rank0, {.what = "reads", .work = work, .log = no_log}).ok());
  EXPECT_TRUE(done);
  ASSERT_GE(said.size(), 4U);
  EXPECT_EQ(said[0], said[2]);
  EXPECT_NE(said[0], said.back()) << "the last word says that it is done";
}

TEST(Rank0Work, TheOthersWaitForTheLastWordAndLogItOnce) {
  int words = 0;
  Broadcasts other(1, [&](std::byte& word) {
    word = std::byte{++words == 5 ? std::uint8_t{1} : std::uint8_t{0}};
    return success();
  });
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) { lines.push_back(line); };
  EXPECT_TRUE(do_at_rank0(other, {.what = "reads a checkpoint", .log = log, .quiet = 0ms}).ok());
  EXPECT_EQ(words, 5);
  EXPECT_THAT(lines, ElementsAre("waits for rank 0, which reads a checkpoint"));
}

TEST(Rank0Work, AShortWaitIsNotLogged) {
  Broadcasts other(1, [words = 0](std::byte& word) mutable {
    word = std::byte{++words == 5 ? std::uint8_t{1} : std::uint8_t{0}};
    return success();
  });
  const auto log = [](const std::string& line) { ADD_FAILURE() << line; };
  EXPECT_TRUE(do_at_rank0(other, {.what = "reads", .log = log}).ok());
}

TEST(Rank0Work, IsDoneAlsoWhereAnotherWorkerIsLost) {
  for (const bool slow : {false, true}) {
    std::latch failed(1);
    Broadcasts rank0(0, [&](std::byte&) -> Status {
      failed.count_down();
      return io_error("rank 1 is gone");
    });
    bool done = false;
    const auto work = [&] {
      if (slow) failed.wait();
      done = true;
    };
    EXPECT_FALSE(do_at_rank0(rank0, {.what = "reads", .work = work, .log = no_log}).ok());
    EXPECT_TRUE(done);
  }
}

TEST(Rank0Work, OneAloneJustDoesIt) {
  SingleProcess alone;
  bool done = false;
  const auto work = [&] { done = true; };
  EXPECT_TRUE(do_at_rank0(alone, {.what = "reads", .work = work, .log = no_log}).ok());
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace fettle::trainer
