#include "trainer/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/bfloat16.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using kernels::DataType;

class LoaderTest : public testing::Test {
 protected:
  const float* floats(const Batch& batch) {
    return reinterpret_cast<const float*>(batch.pixels.data());
  }

  const ImageSet images_ = SyntheticImages(50).set();
  const Indices train_ = keyed_permutation(37, 5);
};

TEST_F(LoaderTest, MeasuresMeanAndDeviationOfTheChosenSamples) {
  double sum = 0;
  double squares = 0;
  for (const auto i : train_) {
    for (int p = 0; p < 64; ++p) {
      const double value = images_.image(i)[p] / 255.0;
      sum += value;
      squares += value * value;
    }
  }
  const double n = 37 * 64;
  const auto measured = measure_pixels(images_, train_);
  EXPECT_NEAR(measured.mean, sum / n, 1e-12);
  EXPECT_NEAR(measured.std, std::sqrt(squares / n - sum * sum / n / n), 1e-12);
}

TEST_F(LoaderTest, NormalisesInBothPrecisions) {
  const Indices samples = {3, 4};
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
    const BatchWriter writer({0.25, 0.5}, {}, type, 0);
    Batch batch = writer.make_batch(images_, 2);
    writer.write(images_, samples, 0, batch);
    EXPECT_EQ(batch.labels[1], images_.label(4));
    const float expected = (static_cast<float>(images_.image(4)[10]) / 255.0F - 0.25F) / 0.5F;
    if (type == DataType::kFloat32) {
      EXPECT_FLOAT_EQ(floats(batch)[64 + 10], expected);
    } else {
      const auto* bits = reinterpret_cast<const std::uint16_t*>(batch.pixels.data());
      EXPECT_NEAR(kernels::from_bfloat16(bits[64 + 10]), expected, 0.01);
    }
  }
}

TEST_F(LoaderTest, AugmentationIsAFunctionOfSeedEpochAndSampleAlone) {
  const BatchWriter writer({0, 1}, {.flip = true, .shift = 2}, DataType::kFloat32, 9);
  Batch alone = writer.make_batch(images_, 1);
  Batch among = writer.make_batch(images_, 3);
  const Indices one = {7};
  const Indices three = {1, 7, 2};
  writer.write(images_, one, 4, alone);
  writer.write(images_, three, 4, among);
  const std::vector<float> image(floats(alone), floats(alone) + 64);
  EXPECT_THAT(image, testing::ElementsAreArray(floats(among) + 64, 64));
  writer.write(images_, one, 5, alone);
  EXPECT_THAT(image, testing::Not(testing::ElementsAreArray(floats(alone), 64)));
}

TEST_F(LoaderTest, AFlipMirrorsAndAShiftMovesZerosIn) {
  // With many samples every combination occurs; each result must be a mirrored, shifted original.
  const BatchWriter writer({0, 1.0 / 255}, {.flip = true, .shift = 1}, DataType::kFloat32, 2);
  Batch batch = writer.make_batch(images_, 1);
  int flipped = 0;
  for (std::int64_t sample = 0; sample < 50; ++sample) {
    writer.write(images_, {&sample, 1}, 0, batch);
    int matches = 0;
    for (const bool flip : {false, true}) {
      for (int down = -1; down <= 1; ++down) {
        for (int right = -1; right <= 1; ++right) {
          bool same = true;
          for (int y = 0; y < 8; ++y) {
            for (int x = 0; x < 8; ++x) {
              const int row = y - down;
              const int column = x - right;
              const bool inside = row >= 0 && row < 8 && column >= 0 && column < 8;
              const int source = row * 8 + (flip ? 7 - column : column);
              const float expected = inside ? images_.image(sample)[source] : 0.0F;
              same = same && std::abs(floats(batch)[y * 8 + x] - expected) < 1e-3F;
            }
          }
          matches += same;
          flipped += same && flip;
        }
      }
    }
    EXPECT_EQ(matches, 1) << "sample " << sample;
  }
  EXPECT_GT(flipped, 10);
  EXPECT_LT(flipped, 40);
}

// All indices that a loader produces, with a `|` (-1) after each optimiser step.
std::vector<std::int64_t> everything(const ImageSet& images, const Indices& train,
                                     const LoaderSettings& settings, Position start,
                                     std::int64_t steps) {
  const BatchWriter writer({0, 1}, {}, DataType::kFloat32, 0);
  Loader loader(images, train, writer, settings, start);
  std::vector<std::int64_t> all;
  while (steps > 0) {
    const LoadedBatch& loaded = loader.next();
    EXPECT_LE(loaded.batch.size(), settings.max_samples);
    all.insert(all.end(), loaded.batch.indices.begin(), loaded.batch.indices.end());
    if (!loaded.last_of_step) continue;
    all.push_back(-1);
    --steps;
  }
  return all;
}

TEST_F(LoaderTest, MicroBatchesDoNotChangeWhichSamplesMakeAStep) {
  LoaderSettings settings{.seed = 3, .epochs = 2, .global_batch = 10, .max_samples = 10};
  const auto whole = everything(images_, train_, settings, {}, 8);
  settings.max_samples = 3;
  EXPECT_EQ(everything(images_, train_, settings, {}, 8), whole);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), train_[0]), 2);  // once an epoch
}

TEST_F(LoaderTest, ResumesInTheMiddleOfAnEpoch) {
  const LoaderSettings settings{.seed = 3, .epochs = 2, .global_batch = 10, .max_samples = 4};
  const auto whole = everything(images_, train_, settings, {}, 8);
  const auto rest = everything(images_, train_, settings, {0, 20}, 6);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + 22));
}

TEST_F(LoaderTest, TheWorkersTogetherTakeTheSamplesOfEveryStep) {
  LoaderSettings settings{.seed = 3, .epochs = 1, .global_batch = 10, .max_samples = 4};
  const auto single = everything(images_, train_, settings, {}, 4);
  settings.world_size = 8;  // the last batch has 7 samples: one worker has none
  std::vector<std::vector<std::int64_t>> steps(4);
  for (settings.rank = 0; settings.rank < 8; ++settings.rank) {
    std::size_t step = 0;
    for (const auto i : everything(images_, train_, settings, {}, 4)) {
      if (i < 0) {
        ++step;
      } else {
        steps[step].push_back(i);
      }
    }
  }
  std::vector<std::int64_t> together;
  for (auto& step : steps) {
    together.insert(together.end(), step.begin(), step.end());
    together.push_back(-1);
  }
  EXPECT_EQ(together, single);
}

TEST_F(LoaderTest, DealingOnlyNamesTheSamplesThatItWouldWrite) {
  LoaderSettings settings{.seed = 3, .epochs = 2, .global_batch = 10, .max_samples = 4};
  const auto written = everything(images_, train_, settings, {}, 8);
  settings.deals_only = true;
  EXPECT_EQ(everything(images_, train_, settings, {}, 8), written);
  const BatchWriter writer({0, 1}, {}, DataType::kFloat32, 0);
  Loader loader(images_, train_, writer, settings, {});
  EXPECT_TRUE(loader.next().batch.is_dealt());
}

TEST_F(LoaderTest, CanBeDestroyedWhileItIsAhead) {
  const BatchWriter writer({0, 1}, {}, DataType::kFloat32, 0);
  const LoaderSettings settings{.epochs = 1000, .global_batch = 10, .max_samples = 10};
  Loader unused(images_, train_, writer, settings, {});
  Loader used(images_, train_, writer, settings, {});
  used.next();
}

}  // namespace
}  // namespace fettle::trainer
