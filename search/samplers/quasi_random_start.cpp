#include "search/samplers/quasi_random_start.h"

#include "search/incremental_sampler.h"

namespace fettle::search {

QuasiRandomStart::QuasiRandomStart(std::size_t dimensions, std::int64_t seed) {
  if (dimensions >= 1 && dimensions <= SobolSequence::kMaxDimensions) {
    sequence_.emplace(dimensions, draw_key(seed, Purpose::kScramble));
  }
}

std::optional<std::vector<double>> QuasiRandomStart::at(std::int64_t index) const {
  if (!sequence_) return std::nullopt;
  return sequence_->at(static_cast<std::uint64_t>(index));
}

Explanation QuasiRandomStart::explain(std::int64_t trial) {
  return {.words = "point " + std::to_string(trial + 1) +
                   " of a quasi-random start, before there is enough to learn from"};
}

}  // namespace fettle::search
