// A Study that tunes the launch of a kernel, on the emulated libfettle_cuda.so: its times mean
// nothing, but all that lies between the Study and the kernel is what it is on a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/test_paths.h"
#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::HasSubstr;

void replace(std::string& text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what;
  text.replace(at, what.size(), by);
}

class KernelLaunch : public testing::Test {
 protected:
  KernelLaunch() {
    ::setenv("PATH", (program_path("") + ":" + ::getenv("PATH")).c_str(), 1);
    ::setenv("FETTLE_CUDA_LIBRARY", program_path("../tests/emulated/libfettle_cuda.so").c_str(), 1);
    ::setenv("FETTLE_KERNEL_CACHE", shop_.path("kernels").c_str(), 1);
  }
  ~KernelLaunch() override {
    ::unsetenv("FETTLE_CUDA_LIBRARY");
    ::unsetenv("FETTLE_KERNEL_CACHE");
  }
  // The example, on less.
  std::string study() {
    std::string text = *read_file(source_path("examples/kernel-launch.yaml"));
    replace(text, "trials: 48", "trials: 6");
    replace(text, "--elements=33554432", "--elements=3000");
    return text;
  }

  Workshop shop_;
};

TEST_F(KernelLaunch, EndsWithTheBestConfiguration) {
  shop_.write("study.yaml", study());
  const Finished done = shop_.fettle({"run", "study.yaml", "--output", "json"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  const Json result = result_of(done);
  EXPECT_EQ(*result.find("state"), Json("succeeded"));
  EXPECT_EQ(shop_.count_phase("Completed", "kernel-launch"), 6U);
  const Json& best = *result.find("best");
  EXPECT_GT(best.find("objective")->as_double(), 0);
  EXPECT_EQ(best.find("parameters")->find("threads")->as_integer() % 32, 0);
}

TEST_F(KernelLaunch, WithoutTheLibraryEachTrialSaysWhatIsMissing) {
  ::setenv("FETTLE_CUDA_LIBRARY", "/nowhere/libfettle_cuda.so", 1);
  std::string text = study();
  replace(text, "    timeout: 1m\n", "    timeout: 1m\n    retries: 0\n");
  shop_.write("study.yaml", text);
  const Finished done = shop_.fettle({"run", "study.yaml"});
  EXPECT_EQ(done.code, 1) << done.out << done.err;
  const Finished log = shop_.fettle({"logs", "kernel-launch-0"});
  EXPECT_THAT(log.out, HasSubstr("there is no CUDA backend here (looked for /nowhere/"));
}

}  // namespace
}  // namespace fettle::e2e
