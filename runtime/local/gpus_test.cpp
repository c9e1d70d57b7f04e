#include "runtime/local/gpus.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

using Gpus = std::vector<std::string>;

TEST(Gpus, EachGoesToOneTrialAtATime) {
  const Gpus visible = {"0", "1", "2"};
  EXPECT_EQ(choose_gpus(visible, {}, 2), (Gpus{"0", "1"}));
  EXPECT_EQ(choose_gpus(visible, {"0", "2"}, 1), Gpus{"1"});
  EXPECT_EQ(choose_gpus(visible, {"0", "2"}, 2), std::nullopt);
  EXPECT_EQ(choose_gpus(visible, {}, 0), Gpus{});
}

}  // namespace
}  // namespace fettle::local
