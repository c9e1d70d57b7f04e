#include "search/maths/sobol_sequence.h"

#include <boost/random/sobol.hpp>

#include "base/check.h"
#include "base/philox.h"

namespace fettle::search {
namespace {

constexpr int kBits = 32;
using Engine = boost::random::sobol_engine<std::uint32_t, kBits>;

static_assert(SobolSequence::kMaxDimensions == boost::random::default_sobol_table::max_dimension);

std::uint32_t reverse_bits(std::uint32_t x) {
  x = ((x >> 1) & 0x55555555U) | ((x & 0x55555555U) << 1);
  x = ((x >> 2) & 0x33333333U) | ((x & 0x33333333U) << 2);
  x = ((x >> 4) & 0x0F0F0F0FU) | ((x & 0x0F0F0F0FU) << 4);
  return __builtin_bswap32(x);
}

// Flips each bit depending on the lower bits only (Burley 2020, after Laine & Karras 2011).
std::uint32_t laine_karras(std::uint32_t x, std::uint32_t seed) {
  x += seed;
  x ^= x * 0x6C50B47CU;
  x ^= x * 0xB82F1E52U;
  x ^= x * 0xC7AFE638U;
  x ^= x * 0x8D22F6E6U;
  return x;
}

// Nested uniform scrambling: each bit is flipped depending on the higher bits.
std::uint32_t scramble(std::uint32_t x, std::uint32_t seed) {
  return reverse_bits(laine_karras(reverse_bits(x), seed));
}

}  // namespace

SobolSequence::SobolSequence(std::size_t dimensions, std::optional<std::uint64_t> seed)
    : dimensions_(dimensions), seed_(seed), directions_(kBits * dimensions) {
  CHECK(dimensions >= 1 && dimensions <= kMaxDimensions, "direction numbers for each dimension");
  // The engine starts at index 1 and goes in the order of the Gray code: its point after
  // 2^(bit + 1) - 2 others is the direction of that bit alone.
  Engine engine(dimensions);
  for (int bit = 0; bit < kBits; ++bit) {
    engine.seed(static_cast<std::uint32_t>((std::uint64_t{2} << bit) - 2));
    for (std::size_t d = 0; d < dimensions; ++d) {
      directions_[static_cast<std::size_t>(bit) * dimensions + d] = engine();
    }
  }
}

std::vector<double> SobolSequence::at(std::uint64_t index) const {
  const auto position = static_cast<std::uint32_t>(index);
  const std::uint32_t gray = position ^ (position >> 1);
  std::vector<double> out(dimensions_);
  for (std::size_t d = 0; d < dimensions_; ++d) {
    std::uint32_t x = 0;
    for (std::size_t bit = 0; bit < kBits; ++bit) {
      if ((gray >> bit) & 1U) x ^= directions_[bit * dimensions_ + d];
    }
    if (seed_) x = scramble(x, static_cast<std::uint32_t>(mix_keys(*seed_, d)));
    out[d] = static_cast<double>(x) * 0x1.0p-32;
  }
  return out;
}

}  // namespace fettle::search
