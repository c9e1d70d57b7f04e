#include "trainer/model/initial_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <thread>
#include <vector>

#include "base/machine/usable.h"
#include "base/philox.h"
#include "trainer/data/batching.h"

namespace fettle::trainer {
namespace {

// Fewer numbers are not worth a thread.
constexpr std::int64_t kPerThread = std::int64_t{1} << 16;
constexpr std::int64_t kMostThreads = 16;

// Gives the numbers that Random(key, stream) gives one after the other: two words of Philox make a
// uniform number, all four of a block a normal one.
class Draws {
 public:
  Draws(std::uint64_t key, std::uint64_t stream)
      : key_{low(key), high(key)}, stream_{low(stream), high(stream)} {}

  double uniform(std::int64_t i) const {
    const PhiloxCounter words = block(static_cast<std::uint64_t>(i / 2));
    return i % 2 == 0 ? unit(words[0], words[1]) : unit(words[2], words[3]);
  }
  // The Box-Muller transform.
  double normal(std::int64_t i) const {
    const PhiloxCounter words = block(static_cast<std::uint64_t>(i));
    const double radius = std::sqrt(-2.0 * std::log1p(-unit(words[0], words[1])));
    return radius * std::cos(2.0 * std::numbers::pi * unit(words[2], words[3]));
  }

 private:
  static std::uint32_t low(std::uint64_t bits) { return static_cast<std::uint32_t>(bits); }
  static std::uint32_t high(std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32); }
  static double unit(std::uint32_t low, std::uint32_t high) {
    const std::uint64_t bits = low | static_cast<std::uint64_t>(high) << 32;
    return static_cast<double>(bits >> 11) * 0x1.0p-53;
  }
  PhiloxCounter block(std::uint64_t number) const {
    return philox({low(number), high(number), stream_[0], stream_[1]}, key_);
  }

  PhiloxKey key_;
  std::array<std::uint32_t, 2> stream_;
};

void draw_range(const Block& block, const Draws& draws, const Range& range, float* to) {
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    to[i] = static_cast<float>(block.deviation > 0 ? block.deviation * draws.normal(i)
                                                   : (2 * draws.uniform(i) - 1) * block.bound);
  }
}

}  // namespace

void draw_initial(const Block& block, std::uint64_t key, std::uint64_t stream, std::int64_t threads,
                  float* all) {
  float* const to = all + block.offset;
  if (!block.drawn()) {
    std::fill_n(to, block.count, block.fill);
    return;
  }
  const Draws draws(key, stream);
  const std::int64_t used = std::clamp(block.count / kPerThread, std::int64_t{1}, threads);
  std::vector<std::jthread> others;
  for (std::int64_t t = 1; t < used; ++t) {
    others.emplace_back([&block, &draws, used, t, to] {
      draw_range(block, draws, share_of({0, block.count}, used, t), to);
    });
  }
  draw_range(block, draws, share_of({0, block.count}, used, 0), to);
}

// Counts usable cores: a pod may have one core of a hundred.
std::int64_t threads_for_drawing() {
  return std::clamp<std::int64_t>(std::llround(machine::usable_cores()), 1, kMostThreads);
}

}  // namespace fettle::trainer
