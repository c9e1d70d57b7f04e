#include "kernels/linear/packed.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/linear/product.h"
#include "kernels/targets.h"

namespace fettle::kernels {
namespace {

std::int64_t words_of(DataType type, std::int64_t inner) {
  return type == DataType::kFloat32 ? inner : (inner + 1) / 2;
}

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The size of one panel: `used` of its `width` numbers, `words` long.
struct PanelShape {
  std::int64_t width, used, words;
};

using Words = std::uint32_t __attribute__((vector_size(32)));
constexpr std::int64_t kBlock = 8;  // words in a register

// Transposes eight registers in three rounds that exchange ever larger parts between pairs.
[[gnu::always_inline]] inline void transpose_block(Words (&r)[kBlock]) {
  Words pairs[kBlock], fours[kBlock];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i : {0, 1, 4, 5}) {
    fours[i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    fours[i + 2] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Sets to[k, j] = from[j, k]. `row_bytes` need not be a multiple of a word.
FETTLE_FOR_EACH_PROCESSOR void transpose_words(const PanelShape& shape, const std::byte* from,
                                               std::int64_t row_bytes, std::uint32_t* to) {
  const std::int64_t whole_rows = shape.used / kBlock * kBlock;
  const std::int64_t whole_words = shape.words / kBlock * kBlock;
  for (std::int64_t k = 0; k < whole_words; k += kBlock) {
    for (std::int64_t j = 0; j < whole_rows; j += kBlock) {
      Words block[kBlock];
      for (std::int64_t i = 0; i < kBlock; ++i) {
        std::memcpy(&block[i], from + (j + i) * row_bytes + k * 4, sizeof(Words));
      }
      transpose_block(block);
      for (std::int64_t i = 0; i < kBlock; ++i) {
        std::memcpy(to + (k + i) * shape.width + j, &block[i], sizeof(Words));
      }
    }
  }
  // Remainder: the last words of the blocked rows, and all words of the rows after them.
  for (std::int64_t j = 0; j < shape.used; ++j) {
    const std::byte* row = from + j * row_bytes;
    for (std::int64_t k = j < whole_rows ? whole_words : 0; k < shape.words; ++k) {
      std::memcpy(to + k * shape.width + j, row + k * 4, sizeof(std::uint32_t));
    }
  }
}

// Sets to[k, j] = from[k, j], where `from` has rows of `row_words`.
FETTLE_FOR_EACH_PROCESSOR void copy_words(const PanelShape& shape, const std::uint32_t* from,
                                          std::int64_t row_words, std::uint32_t* to) {
  constexpr std::int64_t kUsual = kTileColumns;  // a constant, so that memcpy is inlined
  for (std::int64_t k = 0; k < shape.words; ++k) {
    if (shape.used == kUsual) {
      std::memcpy(to + k * shape.width, from + k * row_words, kUsual * sizeof(std::uint32_t));
    } else {
      std::copy_n(from + k * row_words, shape.used, to + k * shape.width);
    }
  }
}

// Sets to[k, j] to the pair {from[2k, j], from[2k + 1, j]}; rows from `rows` on are zero.
FETTLE_FOR_EACH_PROCESSOR void pair_rows(const PanelShape& shape, const std::uint16_t* from,
                                         std::int64_t row_halves, std::int64_t rows,
                                         std::uint32_t* to) {
  for (std::int64_t k = 0; k < shape.words; ++k) {
    const std::uint16_t* __restrict low = from + 2 * k * row_halves;
    const std::uint16_t* __restrict high = low + row_halves;
    std::uint32_t* __restrict pairs = to + k * shape.width;
    if (2 * k + 1 < rows) {
      for (std::int64_t j = 0; j < shape.used; ++j)
        pairs[j] = low[j] | (std::uint32_t{high[j]} << 16);
    } else {
      for (std::int64_t j = 0; j < shape.used; ++j) pairs[j] = low[j];
    }
  }
}

}  // namespace

PackedMatrix::PackedMatrix(DataType type, std::int64_t width, std::int64_t max_outer,
                           std::int64_t max_inner)
    : type_(type),
      width_(width),
      storage_(round_up(max_outer, width) * words_of(type, max_inner)) {}

std::int64_t PackedMatrix::used(std::int64_t panel) const {
  return std::min(width_, outer_ - panel * width_);
}

void PackedMatrix::pack_rows(ConstBuffer from, std::int64_t outer, std::int64_t inner) {
  outer_ = outer;
  words_ = words_of(type_, inner);
  CHECK(panels() * width_ * words_ <= storage_.size(), "the matrix fits its storage");
  const std::int64_t row_bytes = inner * size_of(type_);
  const bool odd = words_ * 4 != row_bytes;
  for (std::int64_t p = 0; p < panels(); ++p) {
    const auto* rows = static_cast<const std::byte*>(from) + p * width_ * row_bytes;
    std::uint32_t* to = storage_.data() + p * words_ * width_;
    transpose_words({width_, used(p), odd ? words_ - 1 : words_}, rows, row_bytes, to);
    if (!odd) continue;
    // Only half of the last word exists: reading all of it could leave the buffer.
    for (std::int64_t j = 0; j < used(p); ++j) {
      std::uint16_t last = 0;
      std::memcpy(&last, rows + (j + 1) * row_bytes - 2, sizeof(last));
      to[(words_ - 1) * width_ + j] = last;
    }
  }
}

void PackedMatrix::unpack_rows(Buffer to, std::int64_t inner) const {
  const std::int64_t row_bytes = inner * size_of(type_);
  for (std::int64_t row = 0; row < outer_; ++row) {
    const std::uint32_t* from = panel(row / width_) + row % width_;
    std::byte* row_to = static_cast<std::byte*>(to) + row * row_bytes;
    for (std::int64_t k = 0; k < words_; ++k) {
      const std::int64_t bytes = std::min<std::int64_t>(4, row_bytes - k * 4);  // 2 at an odd end
      std::memcpy(row_to + k * 4, from + k * width_, static_cast<std::size_t>(bytes));
    }
  }
}

void PackedMatrix::pack_columns(ConstBuffer from, std::int64_t outer, std::int64_t inner) {
  outer_ = outer;
  words_ = words_of(type_, inner);
  CHECK(panels() * width_ * words_ <= storage_.size(), "the matrix fits its storage");
  for (std::int64_t p = 0; p < panels(); ++p) {
    std::uint32_t* to = storage_.data() + p * words_ * width_;
    const PanelShape shape{width_, used(p), words_};
    if (type_ == DataType::kFloat32) {
      copy_words(shape, static_cast<const std::uint32_t*>(from) + p * width_, outer, to);
    } else {
      pair_rows(shape, static_cast<const std::uint16_t*>(from) + p * width_, outer, inner, to);
    }
  }
}

}  // namespace fettle::kernels
