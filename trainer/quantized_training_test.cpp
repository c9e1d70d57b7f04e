// Trainings on the grids of 8-bit integers (training.quantize.method qat): numbers and gradients,
// their begin, their checkpoints. Emulated on a GPU, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backends/cuda/backend.h"
#include "kernels/quantize/formulas.h"
#include "trainer/checkpoint/identity.h"
#include "trainer/files/int8_model.h"
#include "trainer/model/layer_configs.h"
#include "trainer/predict.h"
#include "trainer/quantize/int8_network.h"
#include "trainer/testing/run_training.h"

namespace fettle::trainer {
namespace {

using api::LayerType;
using testing::Contains;
using testing::HasSubstr;

// ---- Numbers and gradients ---------------------------------------------------------------------

using Row = std::vector<float>;

// A linear layer on grids, in plain words: inputs by columns of `weights`, row by row.
struct LinearOnGrids {
  std::vector<Row> weights;  // by output
  Row biases;
  float range[2] = {0, 0};  // of its inputs
  float limit = 127;
  Row x, on_grid;

  std::vector<Row> rounded() const {
    std::vector<Row> rows = weights;
    for (Row& row : rows) {
      float most = 0;
      for (const float w : row) most = std::max(most, std::abs(w));
      for (float& w : row) w = kernels::on_weight_grid(most / limit, limit, w);
    }
    return rows;
  }
  Row forward(const Row& input) {
    x = on_grid = input;
    range[0] += 0.01F * (std::min(0.0F, *std::ranges::min_element(x)) - range[0]);
    range[1] += 0.01F * (std::max(0.0F, *std::ranges::max_element(x)) - range[1]);
    const kernels::ByteGrid grid = kernels::byte_grid(range[0], range[1]);
    for (float& value : on_grid) value = kernels::on_byte_grid(grid, value);
    Row y = biases;
    const std::vector<Row> rows = rounded();
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += rows[o][i] * on_grid[i];
    }
    return y;
  }
  Row gradient_by_weights(const Row& dy) const {
    Row gradient;
    for (const float g : dy) {
      for (const float value : on_grid) gradient.push_back(g * value);
    }
    return gradient;
  }
  Row gradient_by_input(const Row& dy) const {
    Row gradient(x.size());
    const std::vector<Row> rows = rounded();
    const kernels::ByteGrid grid = kernels::byte_grid(range[0], range[1]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t o = 0; o < dy.size(); ++o) gradient[i] += rows[o][i] * dy[o];
      // Half a step beyond the range is still rounded to its end.
      const bool inside = x[i] > range[0] - grid.scale / 2 && x[i] < range[1] + grid.scale / 2;
      if (!inside) gradient[i] = 0;
    }
    return gradient;
  }
};

void expect_near(const std::vector<float>& found, std::size_t at, const Row& expected,
                 const char* what) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[at + i], expected[i], 1e-5) << what << " " << i;
  }
}

class OnGrids : public testing::TestWithParam<std::string> {};

// One sample through linear, ReLU, linear; some inputs are beyond the ranges.
TEST_P(OnGrids, NumbersAndGradientsAreThoseOfTheFormulas) {
  auto made = GetParam() == "cuda" ? kernels::cuda_backend() : kernels::make_backend(GetParam(), 1);
  if (!made.ok()) GTEST_SKIP() << made.error().message;
  kernels::Backend& backend = **made;
  api::TrainerConfig config;
  config.model.layers = {linear(4), simple(LayerType::kRelu), linear(2)};
  config.training.quantize.emplace().method = api::QuantizeMethod::kQat;
  const auto plan = plan_network(config, {{2, 2, 1}, 2, false, ""});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->layers.size(), 4U);
  auto network = Network::create(*plan, backend, {.max_samples = 1}, 0);
  ASSERT_TRUE(network.ok()) << network.error().message;
  LinearOnGrids first{{{0.5F, -1, 0.25F, 1},
                       {-0.3F, 0.8F, 0.1F, -0.6F},
                       {1, 1, -1, 0.2F},
                       {0.7F, -0.2F, 0.9F, 0.4F}},
                      {0.1F, 0.2F, 0.3F, -0.1F},
                      {-1, 1},
                      127,
                      {},
                      {}};
  LinearOnGrids second{
      {{0.4F, -0.9F, 0.35F, 0.6F}, {-0.2F, 0.1F, 0.8F, -0.7F}}, {0, 0.05F}, {0, 1.2F}, 127, {}, {}};
  std::vector<float> weights(static_cast<std::size_t>(plan->parameters));
  std::vector<float> statistics(static_cast<std::size_t>(plan->statistics));
  const LayerPlan* linears[] = {&plan->layers[1], &plan->layers[3]};
  const LinearOnGrids* references[] = {&first, &second};
  for (int i = 0; i < 2; ++i) {
    auto to = weights.begin() + linears[i]->weights.offset;
    for (const Row& row : references[i]->weights) to = std::ranges::copy(row, to).out;
    std::ranges::copy(references[i]->biases, weights.begin() + linears[i]->biases.offset);
    const Block& range = plan->layer(linears[i]->source).range;
    std::copy_n(references[i]->range, 2, statistics.begin() + range.offset);
  }
  Parameters& parameters = (*network)->parameters();
  ASSERT_TRUE(parameters.set_weights(weights, backend).ok());
  parameters.statistics.upload(statistics);
  (*network)->weights_changed();

  const Row input = {0.3F, -1.5F, 0.8F, 2.5F};
  Row hidden = first.forward(input);
  for (float& value : hidden) value = std::max(0.0F, value);
  const Row logits = second.forward(hidden);
  const Row by_logits = {0.7F, -0.4F};
  Row by_hidden = second.gradient_by_input(by_logits);
  for (std::size_t i = 0; i < hidden.size(); ++i) by_hidden[i] *= hidden[i] > 0 ? 1.0F : 0.0F;
  EXPECT_THAT(second.gradient_by_input(by_logits), Contains(0)) << "or no input is cut off";

  auto x = *kernels::DeviceArray<float>::create(backend, 4);
  x.upload(input);
  const Pass pass{.training = true, .samples = 1};
  const kernels::ConstBuffer found = (*network)->forward(pass, x.data());
  std::vector<float> found_logits(2);
  backend.download(found, found_logits.data(), 2 * std::int64_t{sizeof(float)});
  expect_near(found_logits, 0, logits, "logit");
  backend.upload(by_logits.data(), (*network)->logits_gradient(), 2 * std::int64_t{sizeof(float)});
  (*network)->backward(pass, x.data());
  const std::vector<float> gradients = parameters.gradients.download();
  const auto at = [](const Block& block) { return static_cast<std::size_t>(block.offset); };
  expect_near(gradients, at(linears[1]->weights), second.gradient_by_weights(by_logits), "second");
  expect_near(gradients, at(linears[0]->weights), first.gradient_by_weights(by_hidden), "first");
  expect_near(gradients, at(linears[0]->biases), by_hidden, "bias");
  const std::vector<float> ranges = ranges_of(*plan, parameters.statistics.download());
  expect_near(ranges, 0, {first.range[0], first.range[1], second.range[0], second.range[1]}, "end");
}

INSTANTIATE_TEST_SUITE_P(, OnGrids, testing::Values("reference", "onednn", "cuda"),
                         [](const auto& of) { return of.param; });

// ---- Whole trainings ---------------------------------------------------------------------------

class QuantizedTraining : public testing::Test {
 protected:
  QuantizedTraining() {
    task_.config.data = write_synthetic(directory_, 400);
    task_.config.model.layers = {conv(8), simple(LayerType::kBatchNorm), simple(LayerType::kRelu),
                                 simple(LayerType::kMaxPool), linear(4)};
    task_.config.training.backend = api::BackendKind::kReference;
    task_.config.training.optimizer = api::OptimizerKind::kAdam;
    task_.config.training.global_batch = 20;
    task_.config.training.norm_group = 10;
    task_.config.training.epochs = task_.until_epoch = 4;
    quantize() = {.samples = 100, .method = api::QuantizeMethod::kQat, .from_epoch = 2};
    task_.checkpoints = directory_.file("checkpoints");
  }

  api::QuantizeConfig& quantize() {
    auto& config = task_.config.training.quantize;
    return config ? *config : config.emplace();
  }
  RanTraining run(const std::string& name, const RunOptions& options = {}) {
    TrainingTask task = task_;
    task.checkpoints = directory_.file(name);
    RanTraining ran = run_training(task, options);
    EXPECT_EQ(ran.error, "");
    return ran;
  }
  NetworkPlan plan() { return *plan_network(task_.config, {{8, 8, 1}, 4, false, ""}); }
  std::vector<float> ranges(const RanTraining& ran) {
    return ranges_of(plan(), ran.last.statistics);
  }

  TemporaryDirectory directory_;
  TrainingTask task_;
};

TEST_F(QuantizedTraining, BeginsAtItsEpoch) {
  const auto line = Contains(HasSubstr("trains on the grids of 8-bit integers"));
  task_.until_epoch = 2;
  const RanTraining before = run("before");
  EXPECT_THAT(before.log, testing::Not(line));
  EXPECT_THAT(ranges(before), testing::Each(0)) << "there are none yet";
  task_.config.training.quantize.reset();
  EXPECT_EQ(run("plain").weights, before.weights) << "until then nothing differs";
  quantize() = {.samples = 100, .method = api::QuantizeMethod::kQat, .from_epoch = 2};
  task_.until_epoch = 3;
  const RanTraining after = run("after");
  EXPECT_THAT(after.log, line);
  EXPECT_THAT(ranges(after), Contains(testing::Gt(0)));
  quantize().method = api::QuantizeMethod::kPtq;
  quantize().from_epoch.reset();
  EXPECT_NE(run("ptq").weights, after.weights) << "from then on the grids matter";
}

TEST_F(QuantizedTraining, ByDefaultTheLastQuarterIs) {
  quantize().from_epoch.reset();
  const std::pair<std::int64_t, std::int64_t> cases[] = {
      {1, 0}, {2, 1}, {4, 3}, {10, 7}, {100, 75}};
  for (const auto& [epochs, from] : cases) {
    task_.config.training.epochs = epochs;
    EXPECT_EQ(api::quantized_from(task_.config.training), from) << epochs;
  }
}

// Stopped before, at and behind the beginning, and within an epoch.
TEST_F(QuantizedTraining, ResumesBitForBit) {
  const RanTraining whole = run("whole");
  constexpr std::int64_t kSteps = 15;  // of an epoch
  for (const std::int64_t stop : {kSteps - 3, 2 * kSteps, 2 * kSteps + 1, 3 * kSteps + 5}) {
    SCOPED_TRACE(stop);
    const std::string name = "stopped" + std::to_string(stop);
    const RanTraining part = run(name, {.stop_after = static_cast<int>(stop)});
    ASSERT_EQ(part.ending, Ending::kStopped);
    const RanTraining rest = run(name);
    EXPECT_EQ(rest.ending, Ending::kReached);
    EXPECT_EQ(rest.weights, whole.weights);
    EXPECT_EQ(rest.last.statistics, whole.last.statistics);
    EXPECT_EQ(rest.last.int8_ranges, whole.last.int8_ranges);
    EXPECT_EQ(rest.metric("int8_validation_accuracy"), whole.metric("int8_validation_accuracy"));
  }
}

// All workers have the same bits, and the numbers of one worker, up to the order of sums: which
// may put a number on the next step of its grid.
TEST_F(QuantizedTraining, WorkersAgree) {
  const RanTraining alone = run("alone");
  for (const std::int64_t workers : {2, 3}) {
    for (const bool shards : {false, true}) {
      SCOPED_TRACE(std::to_string(workers) + (shards ? " sharded" : ""));
      task_.config.training.shard_optimizer = shards;
      const RanTraining ran =
          run(std::to_string(workers) + (shards ? "s" : ""), {.world_size = workers});
      for (const auto& weights : ran.weights) EXPECT_EQ(weights, ran.weights[0]);
      const auto expected = ranges(alone);
      const auto found = ranges(ran);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 0.02 * std::abs(expected[i])) << i;
      }
      EXPECT_NEAR(ran.metric("int8_validation_accuracy"), alone.metric("int8_validation_accuracy"),
                  0.031);
    }
  }
}

TEST_F(QuantizedTraining, WorkersNeedAGroup) {
  task_.config.training.norm_group.reset();
  task_.config.model.layers = {linear(4)};
  const RanTraining refused = run_training(task_, {.world_size = 2});
  EXPECT_THAT(refused.error, HasSubstr("the ranges of quantize would depend on there being 2"));
}

// The ranges of the checkpoint are trained; the model made of them predicts as validated,
// and the model in fp32 as validation_accuracy says.
TEST_F(QuantizedTraining, ItsNetworksAreTheSavedOnes) {
  const RanTraining ran = run("saved");
  EXPECT_EQ(ran.last.int8_ranges, ranges(ran));
  const SavedModel saved = *read_saved_model(ran.last, "the checkpoint");
  const auto model = int8_model(saved);
  ASSERT_TRUE(model.ok()) << model.error().message;
  DataCache off("");
  const TrainingData data = *load_training_data(task_.config.data, off);
  const auto accuracy = [&](const SavedModel& of) {
    const auto found = predict(of, task_.config.training, data.images, data.split.validation);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return static_cast<double>(found->sums.correct) / static_cast<double>(found->sums.samples);
  };
  EXPECT_EQ(accuracy(*model), ran.metric("int8_validation_accuracy"));
  EXPECT_EQ(accuracy(saved), ran.metric("validation_accuracy"));
  EXPECT_GT(ran.metric("int8_validation_accuracy"), 0.9) << "or nothing is shown";
}

// The training's network computes what the folded one does. With residual sums the plans have the
// most places for a range to be missed or swapped.
TEST_F(QuantizedTraining, RangesAreThoseOfTheFoldedNetwork) {
  task_.config.model.layers = {conv(4),
                               simple(LayerType::kBatchNorm),
                               simple(LayerType::kRelu),
                               simple(LayerType::kResidual),
                               conv(4),
                               simple(LayerType::kBatchNorm),
                               simple(LayerType::kShortcut),
                               conv(4, 1),
                               simple(LayerType::kBatchNorm),
                               simple(LayerType::kAdd),
                               simple(LayerType::kRelu),
                               linear(4)};
  const RanTraining ran = run("blocks");
  EXPECT_GT(ran.metric("int8_validation_accuracy"), 0.9);
  const auto folded = quantized_plan(task_.config.model, {{8, 8, 1}, 4, false, ""});
  ASSERT_TRUE(folded.ok()) << folded.error().message;
  EXPECT_EQ(
      ran.last.int8_ranges.size(),
      ranges_of(*folded, std::vector<float>(static_cast<std::size_t>(folded->statistics))).size());
}

// With weights of -1, 0 and 1 steps rounding hurts a network that has not learnt to live with it.
TEST_F(QuantizedTraining, LosesLessThanRoundingAfterwards) {
  task_.config.model.layers = {
      linear(8), simple(LayerType::kRelu), linear(8), simple(LayerType::kRelu),
      linear(8), simple(LayerType::kRelu), linear(4)};
  task_.config.training.epochs = task_.until_epoch = 12;
  double lost_after = 0;
  double lost_trained = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    task_.seed = seed;
    quantize() = {.samples = 100, .weight_bits = 2, .from_epoch = {}};
    const RanTraining after = run("after" + std::to_string(seed));
    quantize() = {
        .samples = 100, .weight_bits = 2, .method = api::QuantizeMethod::kQat, .from_epoch = 8};
    const RanTraining trained = run("trained" + std::to_string(seed));
    const double best = after.metric("validation_accuracy");
    lost_after += best - after.metric("int8_validation_accuracy");
    lost_trained += best - trained.metric("int8_validation_accuracy");
  }
  EXPECT_GT(lost_after, 0.2) << "or nothing is shown";
  EXPECT_LT(lost_trained, lost_after / 4);
}

TEST_F(QuantizedTraining, FrozenLayersKeepTheirWeights) {
  const NetworkPlan all = plan();
  task_.config.model.freeze = 3;
  const RanTraining ran = run("frozen");
  const InitialValues initial = initial_values(all, task_.seed);
  const Block& first = all.layers[1].weights;
  for (std::int64_t i = first.offset; i < first.offset + first.count; ++i) {
    EXPECT_EQ(ran.weights[0][static_cast<std::size_t>(i)],
              initial.weights[static_cast<std::size_t>(i)]);
  }
  EXPECT_THAT(ran.last.int8_ranges, Contains(testing::Gt(0)));
  EXPECT_NE(ran.weights[0], initial.weights);
}

// 0 is on every grid.
TEST_F(QuantizedTraining, PrunedWeightsStayZero) {
  task_.config.training.prune = api::PruneConfig{.sparsity = 0.5, .begin = 0, .end = 0.5};
  const RanTraining ran = run("pruned");
  EXPECT_NEAR(ran.metric("sparsity"), 0.5, 0.01);
  const auto model = int8_model(*read_saved_model(ran.last, "the checkpoint"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const Block& last = model->plan.layers.back().weights;
  const auto zeros = std::count(model->weights.begin() + last.offset,
                                model->weights.begin() + last.offset + last.count, 0.0F);
  EXPECT_GE(zeros, last.count / 2);
}

TEST_F(QuantizedTraining, RecomputingChangesNothing) {
  const RanTraining kept = run("kept");
  task_.config.training.recompute = true;
  const RanTraining again = run("recomputed");
  EXPECT_EQ(again.weights, kept.weights);
  EXPECT_EQ(again.last.statistics, kept.last.statistics);
}

// The emulator is slow, so these train for two epochs; graphs are captured in both.
TEST_F(QuantizedTraining, OnAGpuIsTheReferences) {
  task_.config.training.epochs = task_.until_epoch = 2;
  quantize().from_epoch = 1;
  const RanTraining expected = run("reference");
  for (const auto precision : {api::Precision::kFp32, api::Precision::kBf16}) {
    task_.config.training.precision = precision;
    const bool same = precision == api::Precision::kFp32;
    const RanTraining found =
        run(same ? "gpu32" : "gpu16", {.backend = [] { return *kernels::cuda_backend(); }});
    EXPECT_NEAR(found.metric("loss"), expected.metric("loss"),
                (same ? 0.01 : 0.05) * expected.metric("loss"));
    const auto ends = ranges(expected);
    ASSERT_EQ(found.last.int8_ranges.size(), ends.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      EXPECT_NEAR(found.last.int8_ranges[i], ends[i], (same ? 0.02 : 0.05) * std::abs(ends[i]));
    }
  }
}

// ---- Identity and memory -----------------------------------------------------------------------

// Checkpoints of versions without the fields resume.
TEST_F(QuantizedTraining, PtqHasTheSettingsOfEarlierVersions) {
  quantize() = {};
  const Json before = settings_of(task_.config, 0);
  EXPECT_THAT(before.dump(), testing::Not(HasSubstr("method")));
  EXPECT_THAT(before.dump(), testing::Not(HasSubstr("fromEpoch")));
  quantize().method = api::QuantizeMethod::kPtq;
  EXPECT_EQ(settings_of(task_.config, 0), before);
  const std::string layout = layout_of(plan());
  quantize().method = api::QuantizeMethod::kQat;
  EXPECT_NE(settings_of(task_.config, 0), before);
  EXPECT_EQ(layout_of(plan()), layout) << "the weights fit";
}

TEST(Int8NetworkMemory, IsWhatThePlanSays) {
  auto backend = *kernels::cuda_backend();
  api::ModelConfig model;
  model.layers = {conv(32), simple(LayerType::kRelu), linear(64), simple(LayerType::kRelu),
                  linear(4)};
  const SampleFormat format{{16, 16, 1}, 4, false, ""};
  const NetworkPlan trained = *plan_network(model, format);
  const InitialValues initial = initial_values(trained, 1);
  const std::int64_t free = *backend->free_memory();
  auto values = *quantized_network(model, format, initial.weights, initial.statistics);
  const std::int64_t planned = Int8Network::bytes(values.plan, 32);
  const auto workspace = Network::workspace(values.plan, *backend, {.max_samples = 32});
  ASSERT_TRUE(workspace.ok()) << workspace.error().message;
  const auto network = Int8Network::create(*backend, std::move(values), 32);
  ASSERT_TRUE(network.ok()) << network.error().message;
  const std::int64_t taken = free - *backend->free_memory();
  EXPECT_GE(taken, planned);
  EXPECT_LE(taken, planned + workspace->total() + planned / 20);
}

}  // namespace
}  // namespace fettle::trainer
