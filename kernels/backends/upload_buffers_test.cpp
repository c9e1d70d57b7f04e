// Upload buffers of every backend: blocks arrive unchanged and stay for the promised time.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/testing/arrays.h"

namespace fettle::kernels::testing {
namespace {

class FeedOf : public ::testing::TestWithParam<std::string> {
 protected:
  Backend* const tested_ = backend(GetParam());
};

TEST_P(FeedOf, KeepsABlockUntilItsPlaceIsNeededAgain) {
  const auto upload_buffers = must(tested_->upload_buffers(sizeof(int)));
  const auto value_at = [&](const std::byte* block) {
    int value = -1;
    tested_->download(block, &value, sizeof value);
    return value;
  };
  const std::byte* before = nullptr;
  for (int i = 0; i < 5; ++i) {
    std::byte* const block = upload_buffers->next();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0);
    std::memcpy(block, &i, sizeof i);
    const std::byte* const there = upload_buffers->enqueue(sizeof i);
    EXPECT_EQ(value_at(there), i);
    if (before != nullptr) {
      EXPECT_EQ(value_at(before), i - 1);
    }
    before = there;
  }
  EXPECT_GE(upload_buffers->waited(), 0);
}

INSTANTIATE_TEST_SUITE_P(, FeedOf, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
