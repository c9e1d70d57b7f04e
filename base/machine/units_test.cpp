#include "base/machine/units.h"

#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

TEST(Units, ThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(80.0 * (1 << 30)), "80.0 GiB");
  EXPECT_EQ(bytes_text(4096.0 * (1LL << 40)), "4096 TiB");
  EXPECT_EQ(flops_text(989e12), "989 TFLOP");
}

}  // namespace
}  // namespace fettle::machine
