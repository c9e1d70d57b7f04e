#include "trainer/data/batching.h"

#include <algorithm>

#include "base/check.h"

namespace fettle::trainer {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Range share_of(Range whole, std::int64_t parts, std::int64_t part) {
  CHECK(parts >= 1 && part >= 0 && part < parts, "no such part");
  const std::int64_t each = whole.size() / parts;
  const std::int64_t larger = whole.size() % parts;  // the first `larger` parts get one more
  const std::int64_t begin = whole.begin + part * each + std::min(part, larger);
  return {begin, begin + each + (part < larger ? 1 : 0)};
}

std::vector<Range> micro_batches(Range share, std::int64_t limit) {
  CHECK(limit >= 1, "a micro-batch holds at least one sample");
  const std::int64_t pieces = divide_up(share.size(), limit);
  std::vector<Range> result;
  result.reserve(static_cast<std::size_t>(pieces));
  for (std::int64_t i = 0; i < pieces; ++i) result.push_back(share_of(share, pieces, i));
  return result;
}

std::vector<Range> deal(Range batch, const Dealing& dealing) {
  const auto [world_size, rank, limit, norm_group] = dealing;
  if (norm_group == 0) return micro_batches(share_of(batch, world_size, rank), limit);
  CHECK(norm_group <= limit, "a worker must be able to hold a group");
  const std::vector<Range> groups = micro_batches(batch, norm_group);
  const Range mine = share_of({0, std::ssize(groups)}, world_size, rank);
  return {groups.begin() + mine.begin, groups.begin() + mine.end};
}

std::int64_t StepShape::samples() const {
  std::int64_t sum = 0;
  for (const Range& piece : deal({0, global_batch}, dealing)) sum += piece.size();
  return sum;
}

std::int64_t accumulation_steps(std::int64_t batch, const Dealing& dealing) {
  Dealing busiest = dealing;
  busiest.rank = 0;
  return std::ssize(deal({0, batch}, busiest));
}

std::int64_t steps_per_epoch(std::int64_t samples, std::int64_t batch) {
  return divide_up(samples, batch);
}

std::int64_t global_batch_of(const api::TrainingConfig& config, std::int64_t world_size) {
  if (config.batch_per_worker) return *config.batch_per_worker * world_size;
  return config.global_batch.value_or(api::kDefaultGlobalBatch);
}

std::int64_t norm_group_of(const api::TrainerConfig& config, std::int64_t batch) {
  if (!api::mixes_samples(config)) return 0;
  return std::min(config.training.norm_group.value_or(0), batch);
}

std::int64_t max_samples_of(const api::TrainingConfig& config, std::int64_t norm_group,
                            std::int64_t batch, std::int64_t world_size) {
  if (norm_group > 0) return norm_group;
  const std::int64_t share = share_of({0, batch}, world_size, 0).size();
  const std::int64_t limit = std::min(share, config.max_per_worker.value_or(share));
  // 86, 85, 85 for 256 samples and a limit of 100. Used as the limit of deal(), this size gives the
  // same number of micro-batches, and no smaller batch has a larger micro-batch.
  return divide_up(share, divide_up(share, limit));
}

}  // namespace fettle::trainer
