#include "trainer/step/gradient_exchange.h"

#include <chrono>
#include <vector>

namespace fettle::trainer {
namespace {

double seconds_since(Trace::Clock::time_point begin) {
  return std::chrono::duration<double>(Trace::Clock::now() - begin).count();
}

}  // namespace

GradientExchange::GradientExchange(Collective& collective, kernels::Backend& backend,
                                   Network& network)
    : collective_(collective),
      backend_(backend),
      network_(network),
      gpus_(backend.shares_memory() ? nullptr : collective.on_device()) {
  const std::int64_t gradients = parameters().gradients.size();
  if (gpus_ != nullptr) {
    all_reduce_.emplace(*gpus_, backend_,
                        plan_messages(network.plan(), gradients, gpus_->least_message()));
  } else {
    sum_.emplace(collective_, plan_messages(network.plan(), gradients));
  }
}

PassHooks GradientExchange::pass_hooks(bool last) {
  if (all_reduce_) {
    return {.layer_done = [this](std::int64_t layer) { all_reduce_->layer_done(layer); },
            .pass_done = [this] { all_reduce_->pass_done(); }};
  }
  // On CPUs a layer's gradients are sent as soon as it is done, while this thread runs the next.
  if (!last || !backend_.shares_memory() || collective_.world_size() == 1) return {};
  return {.layer_done = [this](std::int64_t layer) {
    sum_->layer_done(layer, parameters().all_gradients());
  }};
}

void GradientExchange::last_pass_enqueued() {
  if (all_reduce_) all_reduce_->pass_enqueued(parameters().all_gradients());
}

Status GradientExchange::sum() {
  if (collective_.world_size() == 1) return sum_gradients();  // no other worker to wait for
  const Span span(trace_, "all-reduce");
  const auto begin = Trace::Clock::now();
  Status summed = sum_gradients();
  seconds_ += seconds_since(begin);
  return summed;
}

// If GPUs cannot all-reduce by themselves, the host does it for them.
Status GradientExchange::sum_gradients() {
  if (all_reduce_) return all_reduce_->finish(parameters().all_gradients());
  if (backend_.shares_memory()) return sum_->finish(parameters().all_gradients());
  if (collective_.world_size() == 1) return success();
  std::vector<float> gradients = parameters().gradients.download();
  FETTLE_TRY(sum_->finish(gradients));
  parameters().gradients.upload(gradients);
  return success();
}

// Runs even if the step was not applied, which only its result tells: workers then gather their old
// weights. If this worker keeps only its shard of the masters, operations read 16-bit copies of the
// decayed weights: the copies are gathered, two to a float (bounds are even), and the other weights
// (biases, normalisation) as they are.
Status GradientExchange::gather_weights(const ShardBounds& shards) {
  const Span span(trace_, "all-gather");
  const auto begin = Trace::Clock::now();
  if (parameters().kept) {
    std::vector<std::int64_t> pairs;
    for (const std::int64_t bound : shards.all) pairs.push_back(bound / 2);
    FETTLE_TRY(gather(parameters().rounded_in_pairs(), pairs));
    FETTLE_TRY(gather(parameters().all_weights(), shards.others));
  } else {
    FETTLE_TRY(gather(parameters().all_weights(), shards.all));
  }
  seconds_ += seconds_since(begin);
  parameters().round_weights(backend_);  // does nothing if the copies themselves were gathered
  network_.weights_changed();
  return success();
}

// Sends worker r's part of `values`, in the backend's memory, to all workers.
Status GradientExchange::gather(std::span<float> values, std::span<const std::int64_t> bounds) {
  if (values.empty()) return success();
  if (all_reduce_) return all_reduce_->gather(values, bounds);
  if (backend_.shares_memory()) return collective_.all_gather(values, bounds);
  std::vector<float> on_host(values.size());
  const auto bytes = static_cast<std::int64_t>(values.size_bytes());
  backend_.download(values.data(), on_host.data(), bytes);
  FETTLE_TRY(collective_.all_gather(on_host, bounds));
  backend_.upload(on_host.data(), values.data(), bytes);
  return success();
}

}  // namespace fettle::trainer
