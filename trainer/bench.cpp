#include "trainer/bench.h"

#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "api/names.h"
#include "api/resolve.h"
#include "base/json.h"
#include "base/philox.h"
#include "trainer/collective.h"
#include "trainer/data/loader.h"
#include "trainer/data/split.h"
#include "trainer/learner.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/resnet.h"
#include "trainer/report.h"

namespace fettle::trainer {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kImages = 4096;
constexpr std::int64_t kClasses = 10;
constexpr int kWarmUpSteps = 20;
constexpr kernels::ImageShape kShape{28, 28, 1};

Result<api::ModelConfig> model_named(const std::string& name) {
  const api::LayerConfig relu = simple(api::LayerType::kRelu);
  const api::LayerConfig pool = simple(api::LayerType::kMaxPool);
  api::ModelConfig model;
  if (name == "mlp") {
    model.layers = {linear(512), relu, linear(512), relu, linear(kClasses)};
  } else if (name == "cnn") {
    model.layers = {conv(32), relu, pool, conv(64), relu, pool, linear(kClasses)};
  } else if (name == "resnet9") {
    model.layers = resnet9(kClasses);
  } else if (name == "resnet18") {
    model.layers = resnet18(kClasses, ResNetStem::kSmall);
  } else if (name == "resnet50") {
    model.layers = resnet50(kClasses, ResNetStem::kSmall);
  } else {
    return invalid("there is no benchmark \"" + name +
                   "\", expected mlp, cnn, resnet9, resnet18 or resnet50");
  }
  return model;
}

ImageSet random_images() {
  Random random(1);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kImages * kShape.size()));
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(kImages));
  for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random.bits32());
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::uint8_t>(i % kClasses);
  return ImageSet(kShape, Bytes::copy_of(pixels), Bytes::copy_of(labels));
}

// One optimiser step; returns its seconds and adds its samples.
Result<double> timed_step(Loader& loader, Learner& learner, double rate, std::int64_t& images) {
  const auto start = Clock::now();
  for (bool last = false; !last;) {
    const LoadedBatch& loaded = loader.next();
    learner.add(loaded.batch, 0);
    last = loaded.last_of_step;
  }
  FETTLE_TRY(learner.finish_step({rate, rate, rate}));
  while (const auto step = learner.settle(learner.results_behind())) images += step->score.samples;
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<std::string> run_bench(const BenchSettings& settings) {
  FETTLE_ASSIGN(const api::ModelConfig model, model_named(settings.model));
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(model, kShape, kClasses));
  api::TrainingConfig training = settings.training;
  training.momentum = 0.9;  // SGD as it is mostly used, in scripts/bench_pytorch.py as well
  api::fill_in_defaults(training, 1);
  const std::int64_t batch = *training.global_batch;
  SingleProcess collective;
  FETTLE_ASSIGN(auto learner, Learner::create(training, plan, batch, 0, collective));

  const ImageSet images = random_images();
  const Indices all = keyed_permutation(kImages, 0);
  const BatchWriter writer({0.5, 0.5}, {}, data_type(training.precision), 0);
  LoaderSettings loading;
  loading.epochs = std::numeric_limits<std::int64_t>::max();
  loading.global_batch = loading.max_samples = batch;
  Loader loader(images, all, writer, loading, {});

  std::int64_t count = 0;
  for (int i = 0; i < kWarmUpSteps; ++i) {
    FETTLE_TRY(timed_step(loader, *learner, training.learning_rate, count));
  }
  count = 0;
  StepTimes times;
  const double waited = loader.waited();
  while (times.total() < settings.seconds) {
    FETTLE_ASSIGN(const double seconds,
                  timed_step(loader, *learner, training.learning_rate, count));
    times.add(seconds);
  }
  const double flops = plan.training_flops() * static_cast<double>(count);
  Json result = Json::object();
  result.set("model", settings.model);
  result.set("backend", learner->backend().name());
  result.set("precision", api::to_string(training.precision));
  result.set("threads", training.threads);
  result.set("batch", batch);
  result.set("images_per_second", static_cast<double>(count) / times.total());
  result.set("step_ms_median", 1e3 * times.quantile(0.5));
  result.set("gflops", flops / times.total() / 1e9);
  result.set("data_wait", (loader.waited() - waited) / times.total());
  return result.dump();
}

}  // namespace fettle::trainer
