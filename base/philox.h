// Philox4x32-10: the counter-based random generator of Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011), which cuRAND and PyTorch use on GPUs.
//
// Counter-based means: a draw is a pure function of (key, counter). Everything random in Fettle is
// drawn this way, keyed by the purpose of the draw (seed, epoch, sample, layer, trial index ...),
// so no result depends on the order of work, on the number of workers or on a restart.
// Pure functions; usable from any thread, and, being constexpr, from device code.
#pragma once

#include <array>
#include <cstdint>

namespace fettle {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// Ten rounds over `counter` under `key`: 128 random bits.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// A stream of draws under one 64-bit key and one 64-bit stream number, in order.
// Invariant: draw i of (key, stream) never changes. Cheap to construct; not shared between threads.
class Random {
 public:
  explicit constexpr Random(std::uint64_t key, std::uint64_t stream = 0)
      : key_{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)},
        stream_{static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)} {}

  // Rotates the words of a block: device code can keep them in registers only if no index is
  // computed at run time.
  constexpr std::uint32_t bits32() {
    if (left_ == 0) {
      block_ = philox({static_cast<std::uint32_t>(next_), static_cast<std::uint32_t>(next_ >> 32),
                       stream_[0], stream_[1]},
                      key_);
      ++next_;
      left_ = 4;
    }
    const std::uint32_t bits = block_[0];
    block_ = {block_[1], block_[2], block_[3], 0};
    --left_;
    return bits;
  }

  constexpr std::uint64_t bits64() {
    const std::uint64_t low = bits32();
    return low | (static_cast<std::uint64_t>(bits32()) << 32);
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(bits64() >> 11) * 0x1.0p-53; }

  // Uniform in {0, ..., n - 1}, unbiased by rejection; n > 0.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t threshold = (0 - n) % n;  // 2^64 mod n
    for (;;) {
      const std::uint64_t bits = bits64();
      if (bits >= threshold) return bits % n;
    }
  }

  // Standard normal, by Box-Muller (philox.cpp).
  double normal();

 private:
  PhiloxKey key_;
  std::array<std::uint32_t, 2> stream_;
  std::uint64_t next_ = 0;
  PhiloxCounter block_{};
  unsigned left_ = 0;  // unused words of the block
};

// Mixes words into one 64-bit key, such as "seed, epoch, purpose". (SplitMix64 finaliser.)
constexpr std::uint64_t mix_keys(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15ULL * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace fettle
