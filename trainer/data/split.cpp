#include "trainer/data/split.h"

#include <numeric>
#include <utility>

#include "base/philox.h"

namespace fettle::trainer {

namespace {

// Purposes of a permutation, so that the split and the epochs never share draws.
constexpr std::uint64_t kSplitPurpose = 0x73706C6974;  // "split"
constexpr std::uint64_t kEpochPurpose = 0x65706F6368;  // "epoch"
constexpr std::int64_t kDefaultValidationShare = 6;    // one sample in six

struct Counts {
  std::int64_t held_out = 0;
  std::int64_t train = 0;
};

Result<Counts> counts_of(std::int64_t count, const api::DataConfig& data, const std::string& file) {
  Counts counts;
  counts.held_out =
      data.validation_samples > 0 ? data.validation_samples : count / kDefaultValidationShare;
  counts.train = data.train_samples > 0 ? data.train_samples : count - counts.held_out;
  if (counts.train < 1 || counts.held_out < 1 || counts.train + counts.held_out > count) {
    return invalid("data: " + file + " holds " + std::to_string(count) +
                   " samples, too few for trainSamples " + std::to_string(counts.train) +
                   " and validationSamples " + std::to_string(counts.held_out));
  }
  return counts;
}

}  // namespace

Indices keyed_permutation(std::int64_t n, std::uint64_t key) {
  Indices order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  Random random(key);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(i))]);
  }
  return order;
}

Result<Split> split_samples(std::int64_t count, const api::DataConfig& data) {
  FETTLE_ASSIGN(const Counts counts, counts_of(count, data, data.train_images));
  const auto seed = static_cast<std::uint64_t>(data.split_seed);
  const Indices order = keyed_permutation(count, mix_keys(seed, kSplitPurpose));
  const auto middle = order.begin() + counts.held_out;
  return Split{{middle, middle + counts.train}, {order.begin(), middle}};
}

Result<Split> split_text(std::int64_t count, const api::DataConfig& data) {
  FETTLE_ASSIGN(const Counts counts, counts_of(count, data, data.train_text));
  Indices pieces(static_cast<std::size_t>(count));
  std::iota(pieces.begin(), pieces.end(), std::int64_t{0});
  return Split{{pieces.begin(), pieces.begin() + counts.train},
               {pieces.end() - counts.held_out, pieces.end()}};
}

Indices epoch_order(const Indices& train, std::uint64_t seed, std::int64_t epoch) {
  const std::uint64_t key =
      mix_keys(mix_keys(seed, kEpochPurpose), static_cast<std::uint64_t>(epoch));
  Indices order = keyed_permutation(std::ssize(train), key);
  for (std::int64_t& position : order) position = train[static_cast<std::size_t>(position)];
  return order;
}

}  // namespace fettle::trainer
