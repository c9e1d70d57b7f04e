// FreeBlocks: the choice of blocks, and the joining of neighbours.
#include "kernels/cuda/runtime/free_blocks.h"

#include <gtest/gtest.h>

#include <array>

namespace fettle::kernels::cuda {
namespace {

class FreeBlocksTest : public testing::Test {
 protected:
  std::byte* at(std::size_t offset) { return memory_.data() + offset; }

  std::array<std::byte, 64> memory_{};  // only its addresses are used
  FreeBlocks free_;
};

TEST_F(FreeBlocksTest, TakesTheSmallestBlockThatIsLargeEnough) {
  free_.add_piece(at(0), 16);
  free_.add_piece(at(32), 8);
  EXPECT_EQ(free_.take(8), at(32));
  EXPECT_EQ(free_.take(8), at(0));
  EXPECT_EQ(free_.bytes(), 8);
  EXPECT_EQ(free_.take(9), nullptr);
}

TEST_F(FreeBlocksTest, JoinsTheNeighboursOnBothSides) {
  free_.add_piece(at(0), 24);
  for (const std::size_t offset : {0, 8, 16}) EXPECT_EQ(free_.take(8), at(offset));
  for (const std::size_t offset : {0, 16, 8}) free_.give_back(at(offset), 8);
  EXPECT_EQ(free_.take(24), at(0));
}

TEST_F(FreeBlocksTest, NeverJoinsTwoPiecesThatLieSideBySide) {
  for (const bool rising : {false, true}) {
    FreeBlocks blocks;
    blocks.add_piece(rising ? at(0) : at(16), 16);
    blocks.add_piece(rising ? at(16) : at(0), 16);
    EXPECT_EQ(blocks.take(17), nullptr);
    std::byte* const one = blocks.take(16);
    std::byte* const other = blocks.take(16);
    blocks.give_back(other, 16);
    blocks.give_back(one, 16);
    EXPECT_EQ(blocks.take(17), nullptr) << "no block spans two allocations";
    EXPECT_EQ(blocks.bytes(), 32);
  }
}

}  // namespace
}  // namespace fettle::kernels::cuda
