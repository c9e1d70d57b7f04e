// fettle-trainer --tune-kernels and --time-kernel as their users see them, with the emulated
// libfettle_cuda.so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "trainer/testing/program.h"
#include "trainer/testing/synthetic.h"

namespace fettle::trainer {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class TuneProgram : public testing::Test {
 protected:
  TuneProgram() {
    setenv("FETTLE_KERNEL_CACHE", directory_.file("kernels").c_str(), 1);
    use_library(program_path("../tests/emulated/libfettle_cuda.so"));
  }
  ~TuneProgram() override {
    unsetenv("FETTLE_KERNEL_CACHE");
    unsetenv("FETTLE_CUDA_LIBRARY");
  }
  static void use_library(const std::string& path) {
    setenv("FETTLE_CUDA_LIBRARY", path.c_str(), 1);
  }
  int run(const std::vector<std::string>& options) {
    const pid_t test = getpid();
    const pid_t child = fork();
    if (child == 0) {
      become_trainer(test, "", directory_.file("out"), directory_.file("err"), options);
    }
    return exit_code(child);
  }
  std::string out() { return written_to(directory_.file("out")); }
  std::string err() { return written_to(directory_.file("err")); }
  std::string kept_file() { return directory_.file("kernels/emulated-gpu-9-0.json"); }

  TemporaryDirectory directory_;
};

TEST_F(TuneProgram, MeasuresAllKernelsAndKeepsTheResult) {
  ASSERT_EQ(run({"--tune-kernels", "--elements", "300"}), 0) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("emulated GPU, 300 elements"),
                           ContainsRegex("optimizer/update +[0-9.]+ +[0-9.]+ +[0-9]+ x [0-9]+")));
  EXPECT_THAT(err(), AllOf(HasSubstr("19 of 19: relu/forward, 4 configurations"),
                           HasSubstr("kept in " + kept_file())));
  const auto file = parse_json(written_to(kept_file()));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(*file->find("device"), Json("emulated GPU"));
}

TEST_F(TuneProgram, TimesOneKernelOnALineThatAStudyReads) {
  ASSERT_EQ(run({"--time-kernel", "optimizer/update", "--threads", "96",
                 "--blocks-per-multiprocessor", "3", "--elements", "3e3", "--keep"}),
            0)
      << err();
  const auto line = parse_json(out());
  ASSERT_TRUE(line.ok()) << out();
  EXPECT_GT(line->find("microseconds")->as_double(), 0);
  EXPECT_EQ(*line->find("elements"), Json(3000));
  EXPECT_EQ(*line->find("kept_in"), Json(kept_file()));
  EXPECT_THAT(written_to(kept_file()), HasSubstr("\"blocks_per_multiprocessor\": 3"));
}

TEST_F(TuneProgram, AKeptFileThatCannotBeUsedIsAWarning) {
  ASSERT_TRUE(make_directories(directory_.file("kernels")).ok());
  ASSERT_TRUE(write_file(kept_file(), "{}").ok());
  EXPECT_EQ(run({"--time-kernel", "relu/forward", "--elements", "100"}), 0);
  EXPECT_THAT(err(), HasSubstr("warning: " + kept_file() + ": device: found nothing"));
}

struct Wrong {
  std::vector<std::string> options;
  const char* message;
};

TEST_F(TuneProgram, WrongInputIsAClearSentenceAndExitCode2) {
  const Wrong all[] = {
      {{"--time-kernel", "relu/sideways"}, "expected one of add/add, add/add_scaled, "},
      {{"--time-kernel", "relu/forward", "--threads", "100"}, "a multiple of 32 up to 512"},
      {{"--time-kernel", "relu/forward", "--elements", "1.5"}, "expected a whole number from 1"},
      {{"--time-kernel", "relu/forward", "--elements", "many"}, "--elements is \"many\""},
  };
  for (const auto& [options, message] : all) {
    EXPECT_EQ(run(options), 2) << message;
    EXPECT_THAT(err(), HasSubstr(message));
    EXPECT_EQ(out(), "");
  }
}

TEST_F(TuneProgram, WithoutTheCudaBackendThereIsNothingToMeasure) {
  use_library("/nowhere/libfettle_cuda.so");
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--tune-kernels"}, {"--time-kernel", "relu/forward"}}) {
    EXPECT_EQ(run(options), 2);
    EXPECT_THAT(err(),
                AllOf(HasSubstr("there is no CUDA backend here"), HasSubstr("make build CUDA=1")));
  }
}

TEST_F(TuneProgram, WithoutAGpuItSaysSo) {
  setenv("FETTLE_EMULATOR_DEVICES", "0", 1);
  EXPECT_EQ(run({"--tune-kernels"}), 1);
  unsetenv("FETTLE_EMULATOR_DEVICES");
  EXPECT_THAT(err(), HasSubstr("no GPU: the driver shows this process none"));
  EXPECT_FALSE(std::filesystem::exists(kept_file()));
}

}  // namespace
}  // namespace fettle::trainer
