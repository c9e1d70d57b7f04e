#include "trainer/model/parameters.h"

#include <algorithm>

#include "base/check.h"
#include "base/philox.h"
#include "trainer/model/initial_values.h"

namespace fettle::trainer {

namespace {

using Floats = kernels::DeviceArray<float>;

constexpr std::uint64_t kInitialPurpose = 0x696E6974;  // "init"
constexpr std::int64_t kRoundedAtOnce = std::int64_t{1} << 20;

std::span<const float> part_of(std::span<const float> all, const Range& range) {
  return all.subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

}  // namespace

InitialValues initial_values(const NetworkPlan& plan, std::uint64_t seed) {
  InitialValues values;
  values.weights.resize(static_cast<std::size_t>(plan.parameters));
  values.statistics.resize(static_cast<std::size_t>(plan.statistics));
  float* const weights = values.weights.data();
  float* const statistics = values.statistics.data();
  const std::int64_t threads = threads_for_drawing();
  // The third argument is the stream of draws: changing it would change the values of every seed.
  for (const LayerPlan& layer : plan.layers) {
    const std::uint64_t key =
        mix_keys(mix_keys(seed, kInitialPurpose), static_cast<std::uint64_t>(layer.index));
    draw_initial(layer.weights, key, 0, threads, weights);
    draw_initial(layer.biases, key, 1, threads, weights);
    draw_initial(layer.positions, key, 4, threads, weights);
    draw_initial(layer.running_mean, key, 2, threads, statistics);
    draw_initial(layer.running_variance, key, 3, threads, statistics);
  }
  return values;
}

std::optional<Range> masters_kept(const NetworkPlan& plan, const std::optional<Range>& shard,
                                  kernels::DataType type) {
  if (!shard || type == kernels::DataType::kFloat32) return std::nullopt;
  // An embedding that begins an fp32 stream reads its masters.
  const bool reads_masters = std::ranges::any_of(plan.layers, [](const LayerPlan& layer) {
    return layer.wide && layer.type == api::LayerType::kEmbedding;
  });
  if (reads_masters) return std::nullopt;
  return Range{std::min(shard->begin, plan.decayed), std::min(shard->end, plan.decayed)};
}

Result<Parameters> Parameters::create(const NetworkPlan& plan, kernels::DataType type,
                                      kernels::Backend& backend, bool trained) {
  Parameters made;  // `weights` is empty until keep_masters_of()
  made.count = plan.parameters;
  made.decayed = plan.decayed;
  if (trained) {
    FETTLE_ASSIGN(made.gradients,
                  Floats::create(backend, plan.parameters + plan.statistics + kStepSums));
  }
  FETTLE_ASSIGN(made.statistics, Floats::create(backend, plan.statistics));
  if (trained && plan.trains_quantized()) {
    FETTLE_ASSIGN(made.grids, kernels::DeviceArray<std::uint8_t>::create(
                                  backend, plan.decayed * kernels::size_of(type)));
  }
  if (type == kernels::DataType::kFloat32) return made;
  made.rounded_type = type;
  FETTLE_ASSIGN(made.rounded,
                kernels::DeviceArray<std::uint16_t>::create(backend, plan.parameters));
  return made;
}

Status Parameters::keep_masters_of(const std::optional<Range>& decayed_range,
                                   kernels::Backend& backend) {
  CHECK(!decayed_range || !rounded.empty(), "in fp32 operations read the masters");
  const std::int64_t whole = decayed_range ? count - decayed : count;
  const bool fits = whole == weights.size() && kept == decayed_range;  // as before
  if (fits) return success();
  weights = {};  // freed before a new array is allocated
  shard = {};
  kept = decayed_range;
  FETTLE_ASSIGN(weights, Floats::create(backend, whole));
  if (kept) {
    FETTLE_ASSIGN(shard, Floats::create(backend, kept->size()));
  }
  return success();
}

Status Parameters::set_weights(std::span<const float> all, kernels::Backend& backend) {
  CHECK(std::ssize(all) == count, "weights of another network");
  if (!kept) {
    weights.upload(all);
    round_weights(backend);
    return success();
  }
  shard.upload(part_of(all, *kept));
  weights.upload(part_of(all, {decayed, count}));
  // The copies cover all masters, most of which are not kept here. The backend works in order: each
  // upload waits until the previous piece is rounded.
  FETTLE_ASSIGN(Floats piece, Floats::create(backend, std::min(count, kRoundedAtOnce)));
  for (std::int64_t begin = 0; begin < count; begin += kRoundedAtOnce) {
    const Range range{begin, std::min(begin + kRoundedAtOnce, count)};
    piece.upload(part_of(all, range));
    backend.round(rounded_type, range.size(), piece.data(), rounded.data() + range.begin);
  }
  backend.wait();  // the piece is still being read
  return success();
}

void Parameters::apply_mask(std::span<const std::uint16_t> mask) {
  const auto zero_dropped = [mask](auto& array, const Range& parameters) {
    auto values = array.download();
    for (std::int64_t i = parameters.begin; i < parameters.end; ++i) {
      const std::uint16_t word = mask[static_cast<std::size_t>(i / kernels::kMaskBits)];
      const bool is_kept = (word >> (i % kernels::kMaskBits) & 1) != 0;
      if (!is_kept) values[static_cast<std::size_t>(i - parameters.begin)] = 0;
    }
    array.upload(values);
  };
  if (!kept) return zero_dropped(weights, {0, decayed});
  if (kept->size() > 0) zero_dropped(shard, *kept);
  zero_dropped(rounded, {0, decayed});
}

float* Parameters::master(std::int64_t parameter) {
  if (!kept) return weights.data() + parameter;
  if (parameter >= decayed) return weights.data() + (parameter - decayed);
  CHECK(parameter >= kept->begin && parameter < kept->end, "another worker keeps this master");
  return shard.data() + (parameter - kept->begin);
}

void Parameters::round_weights(kernels::Backend& backend) {
  if (rounded.empty() || kept) return;
  backend.round(rounded_type, weights.size(), weights.data(), rounded.data());
}

void Parameters::round_to_grids(const NetworkPlan& plan, kernels::Backend& backend) {
  if (grids.empty() || !quantizes) return;
  for (const LayerPlan& layer : plan.layers) {
    if (layer.weight_bits == 0) continue;
    const std::int64_t rows = layer.output.channels;
    const auto limit = static_cast<float>((1 << (layer.weight_bits - 1)) - 1);
    backend.fake_quantize_weights(type(), {rows, layer.weights.count / rows, limit},
                                  typed(layer.weights), grid(layer.weights));
  }
}

kernels::ConstBuffer Parameters::operand(const LayerPlan& layer) {
  if (layer.weight_bits > 0 && quantizes && !grids.empty()) return grid(layer.weights);
  return typed(layer.shared.count > 0 ? layer.shared : layer.weights);
}

kernels::ConstBuffer Parameters::typed(const Block& block) {
  if (rounded.empty()) return weights.data() + block.offset;
  return rounded.data() + block.offset;
}

}  // namespace fettle::trainer
