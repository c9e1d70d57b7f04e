// Augmentation: where a sample is moved, and which pixel appears at each place. Pure functions of
// (seed, epoch, index of the sample), the same in every backend, bit for bit. Usable from any
// thread and from device code.
#pragma once

#include <cstdint>

#include "base/philox.h"
#include "kernels/backend.h"
#include "kernels/host_device.h"

namespace fettle::kernels {

// Mirrored first, then shifted down and right. Without initial values, which shared memory forbids.
struct Move {
  bool flip;
  std::int32_t down;
  std::int32_t right;
};

// A pixel of an image; everything outside is black.
struct Place {
  std::int32_t row;
  std::int32_t column;
  bool inside;
};

FETTLE_HOST_DEVICE inline bool moves(const ImageLook& look) { return look.flip || look.shift > 0; }

FETTLE_HOST_DEVICE inline Move draw_move(const ImageLook& look, std::uint32_t epoch,
                                         std::int64_t index) {
  constexpr std::uint64_t kPurpose = 0x6175676D656E74;  // "augment"
  Random random(mix_keys(mix_keys(look.seed, kPurpose), epoch), static_cast<std::uint64_t>(index));
  Move move{};
  move.flip = look.flip && (random.bits32() & 1) != 0;
  if (look.shift > 0) {
    const auto choices = static_cast<std::uint64_t>(2 * look.shift + 1);
    move.down =
        static_cast<std::int32_t>(random.below(choices)) - static_cast<std::int32_t>(look.shift);
    move.right =
        static_cast<std::int32_t>(random.below(choices)) - static_cast<std::int32_t>(look.shift);
  }
  return move;
}

// Returns the image's pixel that appears at (row, column) after the move.
FETTLE_HOST_DEVICE inline Place place_before(const Move& move, std::int32_t height,
                                             std::int32_t width, std::int32_t row,
                                             std::int32_t column) {
  row -= move.down;
  column -= move.right;
  const bool inside = row >= 0 && row < height && column >= 0 && column < width;
  return {row, move.flip ? width - 1 - column : column, inside};
}

}  // namespace fettle::kernels
