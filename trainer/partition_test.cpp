// Workers that all reach rank 0 but not each other: the odd one is excluded, the others train on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "trainer/data/training_data.h"
#include "trainer/elastic_training.h"
#include "trainer/model/layer_configs.h"
#include "trainer/parallel/unreachable_pairs.h"
#include "trainer/testing/synthetic.h"
#include "trainer/testing/workers.h"

namespace fettle::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(UnreachablePairs, TheHigherRankOfThePairThatIsReportedMostOftenIsToGo) {
  UnreachablePairs pairs;
  for (int epoch = 0; epoch < kMostFruitlessEpochs; ++epoch) {
    EXPECT_FALSE(pairs.is_stuck()) << epoch;
    pairs.report(3, 1);
    if (epoch == 0) pairs.report(0, 2);
    pairs.end_epoch(/*progress=*/false);
  }
  ASSERT_TRUE(pairs.is_stuck());
  EXPECT_EQ(pairs.worst()->lower, 1);
  EXPECT_EQ(pairs.worst()->higher, 3);
}

TEST(UnreachablePairs, ProgressForgetsWhatWasReported) {
  UnreachablePairs pairs;
  for (int epoch = 0; epoch + 1 < kMostFruitlessEpochs; ++epoch) pairs.end_epoch(false);
  pairs.report(1, 2);
  pairs.end_epoch(true);
  EXPECT_FALSE(pairs.worst());
  for (int epoch = 0; epoch < kMostFruitlessEpochs; ++epoch) {
    EXPECT_FALSE(pairs.is_stuck()) << epoch;
    pairs.end_epoch(false);
  }
  EXPECT_TRUE(pairs.is_stuck());
  EXPECT_FALSE(pairs.worst()) << "no worker was reported since";
}

// Ranks 0 and 1 train; the test plays rank 2.
class PartitionTest : public testing::Test {
 protected:
  PartitionTest() {
    task_.config.data = write_synthetic(directory_, 200);
    task_.config.model.layers = {linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.global_batch = 50;
    task_.config.training.epochs = task_.until_epoch = 2;
    DataCache cache("");
    data_.emplace(*load_training_data(task_.config.data, cache));
    request_.master = {"127.0.0.1", port_.number()};
    request_.trial = "u/s-0";
    request_.world_size = 3;
    request_.open = true;
    request_.timeout = 120s;
    request_.log = [this](const std::string& line) { write_down(line); };
  }

  void write_down(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    log_ += line + "\n";
  }
  std::string written() {
    const std::scoped_lock lock(mutex_);
    return log_;
  }
  RendezvousRequest as(std::int64_t rank) const {
    RendezvousRequest request = request_;
    request.rank = rank;
    return request;
  }

  Result<TrainingResult> train_as(std::int64_t rank) {
    TrainingHooks hooks;
    hooks.report = [this](const EpochReport&) { ++reports_; };
    hooks.log = request_.log;
    hooks.should_stop = [] { return false; };
    return train_elastically(task_, *data_, {as(rank), 120s}, /*least=*/2, hooks);
  }

  // Takes part in everything but the ring: no rank reaches it, and it reaches none.
  Status cut_off(std::int64_t rank) {
    FETTLE_ASSIGN(const auto membership, Membership::join(as(rank)));
    for (;;) {
      const ReservedPort closed;
      const Json nobody = Json::object({{"host", "127.0.0.1"}, {"port", int{closed.number()}}});
      if (const auto all = membership->all_gather(nobody.dump()); all.ok()) {
        // It waits for the previous rank, until it hears that others have given up.
        while (sign_of(membership->connections()[0]) != Sign::kTrouble) {
          std::this_thread::sleep_for(5ms);
        }
        (void)membership->explain_loss({.name = "meeting"});
      }
      FETTLE_TRY(membership->form_next_epoch({.least = 2}));
      ++meetings_;
    }
  }

  const ReservedPort port_;
  TemporaryDirectory directory_;
  TrainingTask task_;
  std::optional<TrainingData> data_;
  RendezvousRequest request_;
  std::atomic<int> reports_ = 0;
  std::atomic<int> meetings_ = 0;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(PartitionTest, TheOddOneIsLeftOutAndTheOthersTrain) {
  std::optional<Result<TrainingResult>> ended[2];
  Status odd = success();
  {
    std::jthread first([&] { ended[0].emplace(train_as(0)); });
    std::jthread second([&] { ended[1].emplace(train_as(1)); });
    std::jthread third([&] { odd = cut_off(2); });
  }
  for (const auto& one : ended) {
    ASSERT_TRUE(one->ok()) << one->error().message << written();
    EXPECT_EQ((*one)->ending, Ending::kReached);
  }
  EXPECT_EQ(reports_, 2) << "rank 0 reports each epoch once";
  EXPECT_EQ(meetings_, kMostFruitlessEpochs - 1) << written();
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(odd.error().message,
            "this worker is left out: rank 1 and rank 2 did not reach each other 3 times in a row");
  EXPECT_THAT(written(), HasSubstr("rank 0 of 2 workers"));
}

// It would be unreachable again, and cost the others three epochs each time.
TEST_F(PartitionTest, TheOddOneIsRefusedWhenItComesAgain) {
  std::optional<Result<std::unique_ptr<Membership>>> rank0;
  std::optional<Result<std::unique_ptr<Membership>>> rank1;
  std::optional<Result<std::unique_ptr<Membership>>> rank2;
  {
    std::jthread first([&] { rank0.emplace(Membership::join(as(0))); });
    std::jthread second([&] { rank1.emplace(Membership::join(as(1))); });
    std::jthread third([&] { rank2.emplace(Membership::join(as(2))); });
  }
  const auto fail = [](Membership& membership, std::optional<std::int64_t> unreachable) {
    for (int epoch = 0; epoch < kMostFruitlessEpochs; ++epoch) {
      (void)membership.explain_loss({.name = "meeting", .unreachable = unreachable});
      if (!membership.form_next_epoch({.least = 2, .progress = false}).ok()) return;
    }
  };
  {
    std::jthread first([&] { fail(***rank0, {}); });
    std::jthread second([&] { fail(***rank1, 2); });
    std::jthread third([&] { fail(***rank2, {}); });
  }
  EXPECT_EQ((**rank0)->world_size(), 2);
  EXPECT_EQ((**rank1)->world_size(), 2);
  std::optional<Result<std::unique_ptr<Membership>>> again;
  std::jthread comes([&] { again.emplace(Membership::join(as(2))); });
  for (int i = 0; i < 12'000 && written().find("refused a worker") == std::string::npos; ++i) {
    EXPECT_FALSE((**rank0)->somebody_waits());
    std::this_thread::sleep_for(10ms);
  }
  comes.join();
  ASSERT_FALSE(again->ok());
  EXPECT_THAT(again->error().message, HasSubstr("did not reach each other 3 times in a row"));
}

// For example the GPUs' own network fails: no rank can tell which is at fault, and training must
// end.
TEST_F(PartitionTest, WhereNobodyIsReportedAllGiveUp) {
  std::optional<Result<std::unique_ptr<Membership>>> joined[3];
  Status ended[3] = {success(), success(), success()};
  {
    std::vector<std::jthread> workers;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      workers.emplace_back([&, rank] {
        auto& membership = joined[rank].emplace(Membership::join(as(rank)));
        ASSERT_TRUE(membership.ok());
        while (ended[rank].ok()) {
          (void)(*membership)->explain_loss({.name = "meeting of the GPUs"});
          ended[rank] = (*membership)->form_next_epoch({.least = 2, .progress = false});
        }
      });
    }
  }
  for (const Status& one : ended) {
    EXPECT_EQ(one.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(one.error().message, HasSubstr("3 times in a row they could not make a step"));
  }
}

}  // namespace
}  // namespace fettle::trainer
