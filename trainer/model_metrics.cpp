#include "trainer/model_metrics.h"

#include <chrono>
#include <span>

#include "api/trial/metric_names.h"
#include "base/check.h"
#include "trainer/model/model_flops.h"

namespace fettle::trainer {

namespace metric = api::metric;

namespace {

constexpr double kBytesPerMebibyte = 1 << 20;
constexpr int kWarmUpPasses = 2;  // the first may plan operations for a batch of one
constexpr int kMostPasses = 50;
constexpr double kMostSeconds = 0.2;

std::int64_t statistics_of(const NetworkPlan& plan) {
  std::int64_t count = 0;
  for (const LayerPlan& layer : plan.layers) {
    count += layer.running_mean.count + layer.running_variance.count;
  }
  return count;
}

}  // namespace

Metrics model_metrics(const NetworkPlan& plan) {
  const auto numbers = static_cast<double>(plan.trained() + statistics_of(plan));
  return {{metric::kParameters, static_cast<double>(plan.trained())},
          {metric::kModelSize, sizeof(float) * numbers / kBytesPerMebibyte},
          {metric::kFlopsPerSample, inference_flops(plan)}};
}

double measure_inference_ms(ModelRunner& runner, const ImageSet& images, const Indices& samples,
                            const BatchWriter& writer) {
  CHECK(!samples.empty(), "no sample to measure with");
  const WithoutGrids plain(runner.network());  // once, not in each pass
  const std::span<const std::int64_t> one(samples.data(), 1);
  const auto pass = [&] {
    const auto start = std::chrono::steady_clock::now();
    runner.evaluate(images, one, writer);  // waits for the answer
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double spent = 0;
  for (int i = 0; i < kWarmUpPasses && spent < kMostSeconds; ++i) spent += pass();
  StepTimes times;
  do {
    times.add(pass());
  } while (times.total() < kMostSeconds && times.count() < kMostPasses);
  return 1e3 * times.quantile(0.5);
}

}  // namespace fettle::trainer
