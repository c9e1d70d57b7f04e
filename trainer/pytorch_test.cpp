// Whole trainings against PyTorch: testdata/pytorch_curves.json, by
// tests/golden/pytorch_golden_train.py. In `make test` the backend "cuda" runs on the emulator (by
// FETTLE_CUDA_LIBRARY), in `make gpu` on the GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/trainer/trainer_config.h"
#include "api/trainer/trainer_json.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_paths.h"
#include "trainer/prune/pruning.h"
#include "trainer/quantize/quantized_plan.h"
#include "trainer/step/learner.h"
#include "trainer/step/learning_rate.h"
#include "trainer/testing/step.h"

namespace fettle::trainer {
namespace {

template <class T>
std::vector<T> numbers(const Json& object, std::string_view key) {
  std::vector<T> result;
  for (const Json& value : object.find(key)->as_array()) {
    result.push_back(static_cast<T>(value.as_double()));
  }
  return result;
}

double number(const Json& object, std::string_view key) { return object.find(key)->as_double(); }

api::TrainerConfig config_of(const Json& golden, api::BackendKind backend) {
  Json document = Json::object();
  const Json* context = golden.find("context");
  document.set(
      "data",
      context == nullptr
          ? Json::object({{"trainImages", "none"}, {"trainLabels", "none"}})
          : Json::object({{"format", "tokens"}, {"trainText", "none"}, {"context", *context}}));
  document.set("model", *golden.find("model"));
  document.set("training", *golden.find("training"));
  auto config = api::read_trainer_config(document);
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  config->training.backend = backend;
  // PyTorch's numbers are fp32 if no precision is named; "auto" would be tf32 on a GPU.
  if (config->training.precision == api::Precision::kAuto) {
    config->training.precision = api::Precision::kFp32;
  }
  return *config;
}

// The values with PyTorch's initial weights in the layers with drawn weights.
void put_initial(const Json& golden, const NetworkPlan& plan, std::vector<float>& values) {
  const auto put = [&values](const std::vector<float>& given, const Block& block) {
    ASSERT_EQ(std::ssize(given), block.count);
    std::copy(given.begin(), given.end(), values.begin() + block.offset);
  };
  std::size_t next = 0;
  for (const LayerPlan& layer : plan.layers) {
    if (!layer.weights.drawn()) continue;
    const Json& given = golden.find("initial")->as_array()[next++];
    put(numbers<float>(given, "weights"), layer.weights);
    put(numbers<float>(given, "biases"), layer.biases);
    if (layer.positions.count > 0) put(numbers<float>(given, "positions"), layer.positions);
  }
}

void set_initial(const Json& golden, Network& network) {
  kernels::DeviceArray<float>& held = network.parameters().weights;
  std::vector<float> values = held.download();
  put_initial(golden, network.plan(), values);
  held.upload(values);
  if (golden.find("ranges") == nullptr) return;
  std::vector<float> statistics = network.parameters().statistics.download();
  ASSERT_TRUE(set_ranges(numbers<float>(golden, "ranges"), network.plan(), statistics).ok());
  network.parameters().statistics.upload(statistics);
}

// The teacher of the case, if it has one.
void set_teacher(const Json& golden, const api::TrainerConfig& config, const SampleFormat& format,
                 Learner& learner) {
  const Json* const teacher = golden.find("teacher");
  if (teacher == nullptr) return;
  Json words = golden;
  words.set("model", Json::object({{"layers", *teacher->find("layers")}}));
  const api::TrainerConfig of_teacher = config_of(words, config.training.backend);
  const auto plan = plan_network(of_teacher, format);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  InitialValues values = initial_values(*plan, 0);
  put_initial(*teacher, *plan, values.weights);
  auto network = Network::create_forward_only(*plan, learner.backend(), learner.network().options(),
                                              values.weights, values.statistics);
  ASSERT_TRUE(network.ok()) << network.error().message;
  learner.runner().set_teacher(std::move(*network), *config.training.distill);
}

// Weights that are not 0, of each layer that is pruned.
std::vector<std::int64_t> nonzero(Network& network) {
  const std::vector<float> weights = network.parameters().weights.download();
  std::vector<std::int64_t> counts;
  for (const LayerPlan& layer : network.plan().layers) {
    if (layer.type != api::LayerType::kLinear && layer.type != api::LayerType::kConv) continue;
    const auto first = weights.begin() + layer.weights.offset;
    counts.push_back(layer.weights.count - std::count(first, first + layer.weights.count, 0.0F));
  }
  return counts;
}

ImageSet images_of(const Json& golden) {
  if (golden.find("tokens") != nullptr) {
    const auto tokens = numbers<std::uint16_t>(golden, "tokens");
    const auto* first = reinterpret_cast<const std::uint8_t*>(tokens.data());
    return ImageSet::of_text(Bytes::copy_of({first, tokens.size() * sizeof(std::uint16_t)}),
                             static_cast<std::int64_t>(number(golden, "context")),
                             static_cast<std::int64_t>(number(golden, "vocabulary")));
  }
  const auto side = static_cast<std::int64_t>(number(golden, "side"));
  const auto pixels = numbers<std::uint8_t>(golden, "pixels");
  const auto labels = numbers<std::uint8_t>(golden, "labels");
  return ImageSet({side, side, 1}, Bytes::copy_of(pixels), Bytes::copy_of(labels));
}

api::NormalizeConfig normalize_of(const Json& golden) {
  if (golden.find("mean") == nullptr) return {};
  return {number(golden, "mean"), number(golden, "std")};
}

// Tolerance of a loss. In 16 bits both round the same tensors, but sum in different orders before;
// whether the residual stream is rounded makes no larger difference in networks this small (see
// wide_residuals_test.cpp). A GPU's libraries sum in their own order, step after step.
double tolerance_of(const api::TrainingConfig& training) {
  if (training.precision == api::Precision::kBf16) return 1e-3;
  return training.backend == api::BackendKind::kCuda ? 1e-4 : 1e-5;
}

// Whether this build or machine may lack the backend, or its 16 bits. Not with
// FETTLE_CUDA_STRICT=1, which tests a GPU.
bool may_lack(api::BackendKind backend) {
  const char* strict = std::getenv("FETTLE_CUDA_STRICT");
  return backend != api::BackendKind::kCuda || strict == nullptr || std::string_view(strict) != "1";
}

void expect_same_curve(const Json& golden, api::BackendKind backend) {
  const api::TrainerConfig config = config_of(golden, backend);
  const ImageSet images = images_of(golden);
  const std::int64_t batch_size = *config.training.global_batch;

  SingleProcess single;
  const bool tokens = images.pixel_type() == PixelType::kToken;
  const auto plan = plan_network(config, {images.shape(), images.classes(), tokens, ""});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  auto made = Learner::create(config.training, *plan, shape_of_step(config.training, batch_size), 0,
                              single);
  ASSERT_TRUE(made.ok() || may_lack(backend)) << made.error().message;
  if (!made.ok()) GTEST_SKIP() << made.error().message;
  Learner& learner = **made;
  set_initial(golden, learner.network());
  learner.weights_changed();
  set_teacher(golden, config, {images.shape(), images.classes(), tokens, ""}, learner);

  const BatchWriter writer(normalize_of(golden), {}, kernels::DataType::kFloat32, 0);
  Batch batch = writer.make_batch(images, batch_size);
  Indices order(static_cast<std::size_t>(images.size()));
  std::iota(order.begin(), order.end(), 0);
  const ScheduleLength length{(images.size() + batch_size - 1) / batch_size,
                              *config.training.epochs};
  const auto losses = numbers<double>(golden, "losses");
  std::optional<Pruning> pruning;
  if (config.training.prune) {
    pruning = *Pruning::create(*config.training.prune, *plan, std::ssize(losses));
    learner.set_mask(pruning->mask_of_zeros(*learner.whole_weights()));
  }
  const double tolerance = tolerance_of(config.training);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const auto begin = static_cast<std::int64_t>(step) % length.steps_per_epoch * batch_size;
    const auto size = std::min(batch_size, images.size() - begin);
    writer.write(images, {order.data() + begin, static_cast<std::size_t>(size)}, 0, batch);
    if (pruning && pruning->renews_before(static_cast<std::int64_t>(step))) {
      learner.set_mask(pruning->mask_at(static_cast<std::int64_t>(step), *learner.whole_weights()));
    }
    learner.add(batch, 0);
    const double rate =
        config.training.learning_rate *
        schedule_factor(config.training.schedule, length, static_cast<std::int64_t>(step));
    const double loss = end_step(learner, rate).score.mean_loss();
    EXPECT_NEAR(loss, losses[step], tolerance * losses[step]) << "step " << step;
  }
  if (pruning) {
    EXPECT_EQ(nonzero(learner.network()), numbers<std::int64_t>(golden, "nonzero"));
  }
  if (golden.find("ranges") != nullptr) {
    const auto expected = numbers<float>(golden, "rangesAfter");
    const auto found = ranges_of(*plan, learner.network().parameters().statistics.download());
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4) << i;
  }
  const Score score = *learner.evaluate(images, order, writer);
  EXPECT_NEAR(score.mean_loss(), number(golden, "evaluation"), tolerance * score.mean_loss());
  // In 16 bits two answers may be almost equal, and either may win.
  const double ties = config.training.precision == api::Precision::kBf16 ? 2 : 0;
  EXPECT_NEAR(static_cast<double>(score.correct), number(golden, "correct"), ties);
}

class PyTorch : public testing::TestWithParam<api::BackendKind> {};

TEST_P(PyTorch, TrainsTheSame) {
  const auto text = read_file(source_path("trainer/testdata/pytorch_curves.json"));
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto curves = parse_json(*text);
  ASSERT_TRUE(curves.ok()) << curves.error().message;
  for (const Json& golden : curves->as_array()) {
    SCOPED_TRACE(golden.find("name")->as_string());
    expect_same_curve(golden, GetParam());
  }
}

// On a GPU "auto" is tf32, whose products have 10 bits of mantissa.
TEST(PyTorchCurves, AreFp32WhereTheyNameNoPrecision) {
  const Json golden = Json::object(
      {{"model", *parse_json(R"({"layers": [{"type": "linear", "units": 4}]})")},
       {"training", *parse_json(R"({"globalBatch": 8, "epochs": 1, "optimizer": "sgd"})")}});
  EXPECT_EQ(config_of(golden, api::BackendKind::kCuda).training.precision, api::Precision::kFp32);
}

INSTANTIATE_TEST_SUITE_P(, PyTorch,
                         testing::Values(api::BackendKind::kReference, api::BackendKind::kOnednn,
                                         api::BackendKind::kCuda),
                         [](const auto& of) { return std::string(api::to_string(of.param)); });

}  // namespace
}  // namespace fettle::trainer
