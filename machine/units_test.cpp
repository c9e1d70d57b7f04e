#include "machine/units.h"

#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

TEST(Units, ThreeDigitsAndTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(80.0 * (1 << 30)), "80.0 GiB");
  EXPECT_EQ(bytes_text(4096.0 * (1LL << 40)), "4096 TiB");
  EXPECT_EQ(rate_text(3.35e12), "3.35 TB/s");
  EXPECT_EQ(flops_text(989e12), "989 TFLOP");
  EXPECT_EQ(seconds_text(0.0034), "3.40 ms");
  EXPECT_EQ(seconds_text(2e-9), "2.00 ns");
  EXPECT_EQ(seconds_text(90), "90.0 s");
}

}  // namespace
}  // namespace fettle::machine
