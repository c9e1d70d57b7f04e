#include "trainer/program/bench.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/resolve.h"
#include "api/trial/metric_names.h"
#include "base/check.h"
#include "base/json.h"
#include "base/philox.h"
#include "trainer/data/loader.h"
#include "trainer/data/split.h"
#include "trainer/model/gpt.h"
#include "trainer/model/layer_configs.h"
#include "trainer/model/model_flops.h"
#include "trainer/model/resnet.h"
#include "trainer/parallel/collective.h"
#include "trainer/reporter/training_report.h"
#include "trainer/step/device_metrics.h"
#include "trainer/step/learner.h"
#include "trainer/step/precision.h"
#include "trainer/step/training_device.h"

namespace fettle::trainer {

namespace metric = api::metric;

namespace {

using Clock = std::chrono::steady_clock;

// Limits of the synthetic set; it holds at least one batch.
constexpr std::int64_t kBytes = 64 << 20;
constexpr std::int64_t kMostImages = 4096;
constexpr int kWarmUpSteps = 20;

// The measured network, and the samples that it is trained on.
struct Workload {
  api::ModelConfig model;
  SampleFormat format{{28, 28, 1}, /*classes=*/10, /*tokens=*/false, /*vocabulary=*/""};

  void take(std::vector<api::LayerConfig> layers) { model.layers = std::move(layers); }
  // A text model: `format` has its length and its vocabulary.
  void take(const api::GptConfig& size) { take(gpt(size)); }
};

Result<Workload> workload_named(const std::string& name) {
  const api::LayerConfig relu = simple(api::LayerType::kRelu);
  const api::LayerConfig pool = simple(api::LayerType::kMaxPool);
  const SampleFormat small{{32, 32, 3}, /*classes=*/10, /*tokens=*/false, /*vocabulary=*/""};
  Workload workload;
  if (name == "mlp") {
    workload.take({linear(512), relu, linear(512), relu, linear(10)});
  } else if (name == "cnn") {
    workload.take({conv(32), relu, pool, conv(64), relu, pool, linear(10)});
  } else if (name == "resnet9") {
    workload.format = small;
    workload.take(resnet9(10));
  } else if (name == "resnet18") {
    workload.format = small;
    workload.take(resnet18(10, ResNetStem::kSmall));
  } else if (name == "resnet50") {
    workload.format = {{224, 224, 3}, 1000, /*tokens=*/false, ""};
    workload.take(resnet50(1000, ResNetStem::kLarge));
  } else if (name == "chargpt") {
    workload.format = {{256, 1, 1}, 84, /*tokens=*/true, ""};
    workload.take(api::GptConfig{.layers = 6, .heads = 6, .width = 384});
  } else if (name == "gpt2") {
    workload.format = {{1024, 1, 1}, 50304, /*tokens=*/true, ""};
    workload.take(api::GptConfig{.layers = 12, .heads = 12, .width = 768});
  } else {
    return invalid("there is no benchmark \"" + name +
                   "\", expected mlp, cnn, resnet9, resnet18, resnet50, chargpt or gpt2");
  }
  return workload;
}

// About `most`, rounded to whole batches, so that every step has the measured batch size.
std::int64_t whole_batches(std::int64_t most, std::int64_t batch) {
  return std::max(batch, most / batch * batch);
}

ImageSet random_text(const SampleFormat& format, std::int64_t batch) {
  Random random(1);
  const std::int64_t count = whole_batches(kMostImages, batch);
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count * format.input.size() + 1));
  for (auto& token : tokens) {
    token = static_cast<std::uint16_t>(random.below(static_cast<std::uint64_t>(format.classes)));
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(tokens.data());
  return ImageSet::of_text(Bytes::copy_of(std::vector(bytes, bytes + 2 * tokens.size())),
                           format.input.height, format.classes);
}

ImageSet random_samples(const SampleFormat& format, std::int64_t batch) {
  if (format.tokens) return random_text(format, batch);
  Random random(1);
  const std::int64_t count =
      whole_batches(std::min(kMostImages, kBytes / format.input.size()), batch);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * format.input.size()));
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(count));
  for (auto& pixel : pixels) pixel = static_cast<std::uint8_t>(random.bits32());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 10);
  return ImageSet(format.input, Bytes::copy_of(pixels), Bytes::copy_of(labels));
}

// Runs one optimiser step and returns its seconds. Adds to `predictions` those of the steps whose
// results have arrived; if the backend runs behind the host, these are earlier steps.
Result<double> timed_step(Loader& loader, Learner& learner, double rate,
                          std::int64_t& predictions) {
  const auto start = Clock::now();
  for (bool last = false; !last;) {
    const LoadedBatch& loaded = loader.next();
    last = loaded.last_of_step;
    learner.add(loaded.batch, /*epoch=*/0, last);
  }
  Learner::LearningRates rates;
  rates.fill(rate);  // without a schedule the rate does not depend on skipped steps
  FETTLE_TRY(learner.finish_step(rates));
  while (const auto step = learner.settle(learner.results_behind())) {
    predictions += step->score.samples;  // tokens of a text, as Score counts them
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Result<std::string> run_bench(const BenchSettings& settings) {
  FETTLE_ASSIGN(const Workload workload, workload_named(settings.model));
  api::TrainingConfig training = settings.training;
  training.momentum = 0.9;  // the usual SGD; scripts/bench_pytorch.py uses it, too
  api::fill_in_defaults(training, /*epochs=*/1);
  api::TrainerConfig config;
  config.model = workload.model;
  config.training = training;
  FETTLE_ASSIGN(const NetworkPlan plan, plan_network(config, workload.format));
  const std::int64_t batch = *training.global_batch;
  const ImageSet images = random_samples(workload.format, batch);
  CHECK(images.size() % batch == 0, "a step that is smaller than the batch");
  const Indices all = keyed_permutation(images.size(), /*key=*/0);
  const BatchWriter writer({.mean = 0.5, .std = 0.5}, {}, data_type(training.precision),
                           /*seed=*/0);
  LoaderSettings loading;
  SingleProcess collective;
  FETTLE_ASSIGN(auto backend, open_backend(training));
  loading.deals_only = !backend->shares_memory();
  std::optional<HeldSamples> held;
  if (loading.deals_only) {  // the GPU holds the set, and the loader only names samples
    held = HeldSamples{.images = &images, .training = &writer, .evaluation = &writer};
  }
  const StepShape step{
      .configured_batch = batch, .global_batch = batch, .dealing = {.limit = batch}};
  FETTLE_ASSIGN(auto learner, Learner::create_on(std::move(backend), training, plan, step,
                                                 /*seed=*/0, collective, held));
  loading.epochs = std::numeric_limits<std::int64_t>::max();
  loading.global_batch = loading.max_samples = batch;
  Loader loader(images, all, writer, loading, {});

  std::int64_t predictions = 0;  // of text: tokens
  for (int i = 0; i < kWarmUpSteps; ++i) {
    FETTLE_TRY(timed_step(loader, *learner, training.learning_rate, predictions));
  }
  predictions = 0;  // of the measurement alone
  const auto meter = machine::GpuMeter::open(learner->backend().device().uuid);
  StepTimes times;
  const double waited_before = loader.waited() + learner->waited_for_data();
  while (times.total() < settings.seconds) {
    FETTLE_ASSIGN(const double seconds,
                  timed_step(loader, *learner, training.learning_rate, predictions));
    times.add(seconds);
  }
  const auto samples = static_cast<double>(predictions) / static_cast<double>(plan.predictions());
  Json result = Json::object();
  result.set("model", settings.model);
  result.set("backend", learner->backend().name());
  const api::Precision precision = precision_on(learner->backend(), training.precision);
  result.set("precision", api::to_string(precision));
  result.set("threads", training.threads);
  result.set("batch", batch);
  result.set(plan.tokens ? metric::kTokens : metric::kImages,
             static_cast<double>(predictions) / times.total());
  result.set(metric::kStepMedian, 1e3 * times.quantile(0.5));
  result.set(metric::kStepP95, 1e3 * times.quantile(0.95));
  result.set(metric::kStepP99, 1e3 * times.quantile(0.99));
  result.set(metric::kDataWait,
             (loader.waited() + learner->waited_for_data() - waited_before) / times.total());
  const auto peak = peak_flops_of(learner->backend().device(), precision);
  Metrics of_device = compute_metrics(model_flops(plan) * samples, times.total(), peak);
  if (meter) append(of_device, gpu_metrics(meter->take()));
  for (const auto& [name, value] : of_device) result.set(name, value);
  if (const auto& passes = learner->network().implementations(); !passes.empty()) {
    result.set(metric::kFallbacks, fallbacks(passes));
    result.set("implementations", to_json(passes));
  }
  return result.dump();
}

}  // namespace fettle::trainer
