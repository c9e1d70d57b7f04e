// Fit schedule: after how many outcomes hyperparameters are fitted again.
//
// A sampler that is started on a long history must reach the same hyperparameters as one that saw
// it grow, without fitting at every length. So fits are functions of a prefix of the history, at
// fixed lengths: first after each outcome, later at lengths that grow by a constant share. And each
// starts either from the prior or from the fit at its anchor, a power of two, which itself starts
// from the prior: two fits bring any history up to date. Pure.
#pragma once

#include <bit>
#include <cstdint>

namespace fettle::search {

inline constexpr std::int64_t kEveryOutcome = 32;     // up to here
inline constexpr std::int64_t kShareOfOutcomes = 20;  // later: when one in this many is new
inline constexpr std::int64_t kFirstAnchor = 8;

// The length after `count` at which hyperparameters are fitted again.
constexpr std::int64_t next_fit(std::int64_t count) {
  return count < kEveryOutcome ? count + 1 : count + count / kShareOfOutcomes;
}

constexpr bool is_anchor(std::int64_t count) {
  return count >= kFirstAnchor && std::has_single_bit(static_cast<std::uint64_t>(count));
}

// The last lengths up to `count` at which hyperparameters were fitted, and at which an anchor was
// set; 0 if no such length exists.
constexpr std::int64_t last_fit(std::int64_t count) {
  if (count < 1) return 0;
  std::int64_t out = 1;
  while (next_fit(out) <= count) out = next_fit(out);
  return out;
}
constexpr std::int64_t last_anchor(std::int64_t count) {
  if (count < kFirstAnchor) return 0;
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
}

}  // namespace fettle::search
