// Loads small libraries of testing/ in place of libfettle_cuda.so.
#include "kernels/backends/cuda/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/test_paths.h"
#include "kernels/backend.h"

namespace fettle::kernels {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string plugin(const std::string& name) {
  return program_path("../tests/plugins/" + name + ".so");
}

std::string why_not(const std::vector<std::string>& places) {
  const auto made = load_cuda_backend(places);
  return made.ok() ? "it was loaded" : made.error().message;
}

TEST(CudaLoader, LooksBesideTheProgramThenInLib) {
  EXPECT_THAT(
      cuda_library_places(nullptr, "/opt/fettle/bin"),
      ElementsAre("/opt/fettle/bin/libfettle_cuda.so", "/opt/fettle/bin/../lib/libfettle_cuda.so"));
}

TEST(CudaLoader, LooksNowhereElseThanWhereItIsTold) {
  EXPECT_THAT(cuda_library_places("/elsewhere/cuda.so", "/opt/fettle/bin"),
              ElementsAre("/elsewhere/cuda.so"));
}

TEST(CudaLoader, TakesTheFirstThatExists) {
  EXPECT_TRUE(load_cuda_backend({"/nowhere/cuda.so", plugin("works"), plugin("refuses")}).ok());
}

TEST(CudaLoader, ExplainsHowToBuildAMissingLibrary) {
  EXPECT_THAT(why_not({"/nowhere/cuda.so"}),
              AllOf(HasSubstr("/nowhere/cuda.so"), HasSubstr("make build CUDA=1"),
                    HasSubstr("FETTLE_CUDA_LIBRARY")));
}

TEST(CudaLoader, NamesTheLibraryThatIsMissing) {
  EXPECT_THAT(why_not({plugin("lacks")}),
              AllOf(HasSubstr("lacks.so needs libcudnn_gone.so, which is not on this machine"),
                    HasSubstr("LD_LIBRARY_PATH")));
}

TEST(CudaLoader, RefusesALibraryOfAnotherBuild) {
  EXPECT_THAT(
      why_not({plugin("other_build")}),
      AllOf(HasSubstr("another build"), HasSubstr("of yesterday"), HasSubstr("make build CUDA=1")));
}

TEST(CudaLoader, RefusesALibraryOfSomebodyElse) {
  EXPECT_THAT(why_not({plugin("nothing")}), HasSubstr("does not export fettle_cuda_interface"));
}

TEST(CudaLoader, RefusesAFileThatIsNoLibrary) {
  EXPECT_THAT(why_not({source_path("README.md")}), HasSubstr("could not be loaded"));
}

TEST(CudaLoader, PassesOnTheLibrarysErrorAboutTheMachine) {
  EXPECT_THAT(why_not({plugin("refuses")}), HasSubstr("no GPU"));
}

TEST(CudaLoader, MakesTheBackendCuda) {
  ASSERT_EQ(::setenv("FETTLE_CUDA_LIBRARY", plugin("refuses").c_str(), 1), 0);
  const auto made = make_backend("cuda", 1);
  ::unsetenv("FETTLE_CUDA_LIBRARY");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("no GPU"));
}

}  // namespace
}  // namespace fettle::kernels
