#include "base/machine/gpu_list.h"

#include <gtest/gtest.h>

namespace fettle::machine {
namespace {

using Gpus = std::vector<std::string>;

TEST(GpuList, IsAsCudaReadsIt) {
  EXPECT_EQ(split_gpus("0,3"), (Gpus{"0", "3"}));
  EXPECT_EQ(split_gpus("GPU-8932f937"), Gpus{"GPU-8932f937"});
  EXPECT_EQ(split_gpus("0,-1,2"), Gpus{"0"});
  EXPECT_EQ(split_gpus(""), Gpus{});
  EXPECT_EQ(join_gpus({"0", "3"}), "0,3");
  EXPECT_EQ(join_gpus({}), "");
}

}  // namespace
}  // namespace fettle::machine
