// Programs that are run to their end. kube/transport/credentials_test.cpp has more, of plugins.
#include "base/program.h"

#include <gtest/gtest.h>

namespace fettle {
namespace {

using std::chrono_literals::operator""ms;

Result<ProgramEnd> run_script(const std::string& script) {
  return run_program({.command = {"sh", "-c", script, "name", "an argument"},
                      .environment = {{"GREETING", "hello"}},
                      .keeps_errors = true,
                      .limit = 5000ms});
}

TEST(Program, PrintsToBothOutputs) {
  const auto end = run_script("echo \"$GREETING, $1\"; echo no >&2; read line || echo 'no input'");
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->output, "hello, an argument\nno input\n");
  EXPECT_EQ(end->errors, "no\n");
  EXPECT_EQ(end->failure(), "") << "it ended with 0";
}

TEST(Program, AFailureIsSaidByTheProgramOrByItsCode) {
  EXPECT_EQ(run_script("echo wrong >&2; echo; exit 2")->failure(), "wrong");
  EXPECT_EQ(run_script("exit 2")->failure(), "exit code 2");
  EXPECT_EQ(run_script("kill -9 $$")->failure(), "ended by signal 9");
}

TEST(Program, OutputsLargerThanAPipeAreReadSideBySide) {
  const auto end = run_script("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero");
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->output.size() + end->errors.size(), 600000U);
}

TEST(Program, OneThatIsNotThereIsNotFound) {
  const auto end = run_program({.command = {"/nonexistent/program"}});
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(end.error().message, "cannot be run: No such file or directory");
}

}  // namespace
}  // namespace fettle
