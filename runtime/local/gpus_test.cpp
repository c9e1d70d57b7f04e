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

TEST(Gpus, ListsAsCudaReadsThem) {
  EXPECT_EQ(split_gpus("0,3"), (Gpus{"0", "3"}));
  EXPECT_EQ(split_gpus("GPU-8932f937"), Gpus{"GPU-8932f937"});
  EXPECT_EQ(split_gpus("0,-1,2"), Gpus{"0"});
  EXPECT_EQ(split_gpus(""), Gpus{});
  EXPECT_EQ(join_gpus({"0", "3"}), "0,3");
  EXPECT_EQ(join_gpus({}), "");
}

}  // namespace
}  // namespace fettle::local
