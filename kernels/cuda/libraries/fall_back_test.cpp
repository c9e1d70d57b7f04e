// A library without a plan: our own kernel does the pass, with a note; nothing else falls back.
#include "kernels/cuda/libraries/fall_back.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace fettle::kernels::cuda {
namespace {

using ::testing::HasSubstr;

const Implementation kPass{"attention of 256 tokens", "backward", "cuDNN", "", ""};

class FallBack : public ::testing::Test {
 protected:
  ~FallBack() override { ::unsetenv("FETTLE_CUDA_STRICT"); }
  // Returns the outcome of this plan; `said_` gets standard error.
  Result<std::optional<int>> plan(Result<int> planned) {
    ::testing::internal::CaptureStderr();
    auto found = plan_or_own(plans_, kPass, std::move(planned));
    said_ = ::testing::internal::GetCapturedStderr();
    return found;
  }

  const std::unique_ptr<Device> device_ = std::move(Device::open()).value();
  LibraryPlans plans_{*device_};
  std::string said_;
};

TEST_F(FallBack, APlanIsTheLibrarys) {
  EXPECT_EQ(*plan(7), std::optional(7));
  EXPECT_EQ(said_, "");
  EXPECT_THAT(plans_.implementations().all(), ::testing::ElementsAre(kPass));
}

TEST_F(FallBack, WithoutAPlanItIsOursAndIsSaidOnce) {
  EXPECT_EQ(*plan(not_found("cuDNN has no plan")), std::nullopt);
  EXPECT_EQ(said_, "note: cuDNN has no plan; our own kernels do it\n");
  const Implementation ours{kPass.operation, kPass.pass, "own", "", "cuDNN has no plan"};
  EXPECT_THAT(plans_.implementations().all(), ::testing::ElementsAre(ours));
  EXPECT_EQ(*plan(not_found("cuDNN has no plan")), std::nullopt);
  EXPECT_EQ(said_, "");
}

TEST_F(FallBack, AnythingElseIsAnError) {
  const auto found = plan(io_error("NVRTC is missing"));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message, "NVRTC is missing");
  EXPECT_TRUE(plans_.implementations().all().empty());
}

// A heuristic may answer INVALID_VALUE for an epilogue that it does not support.
TEST_F(FallBack, AFusionIsOptionalForAnyLibraryError) {
  ::setenv("FETTLE_CUDA_STRICT", "1", 1);
  for (const Error& error : {not_found("cuBLASLt has no algorithm"), io_error("INVALID_VALUE")}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(plan_if_there(plans_, kPass, "GELU", Result<int>(error)), std::nullopt);
    EXPECT_EQ(plan_if_there(plans_, kPass, "GELU", Result<int>(error)), std::nullopt);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "note: " + error.message + "; GELU is a kernel of ours\n")
        << "said once";
  }
  EXPECT_EQ(plan_if_there(plans_, kPass, "GELU", Result<int>(7)), std::optional(7));
  const Implementation apart{kPass.operation, "backward, GELU", "own", "", "INVALID_VALUE"};
  EXPECT_EQ(plans_.implementations().all().back(), apart);
}

TEST_F(FallBack, IsAnErrorWhereItIsForbidden) {
  ::setenv("FETTLE_CUDA_STRICT", "1", 1);
  const auto found = plan(not_found("cuDNN has no plan"));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(found.error().message,
              ::testing::AllOf(HasSubstr("cuDNN has no plan"), HasSubstr("FETTLE_CUDA_STRICT=1"),
                               HasSubstr("attention of 256 tokens, backward")));
  EXPECT_EQ(*plan(7), std::optional(7));
}

}  // namespace
}  // namespace fettle::kernels::cuda
