// What somebody meets who brings a program of their own: where it runs, and what it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/e2e/workshop.h"

namespace fettle::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FirstHour, TrialsStartInTheFolderOfTheStudyFile) {
  Workshop shop;
  shop.write("project/train.sh", "pwd >> seen; echo '{\"value\": 1}'\n");
  StudyText text;
  text.script = ". ./train.sh";
  text.budget = "{trials: 1}";
  shop.write("project/study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "project/study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.read("project/seen"), shop.path("project") + "\n");
  EXPECT_TRUE(shop.exists(".fettle/digits.db")) << "state stays where fettle was started";
  // A Study of standard input has no folder.
  text.name = "piped";
  text.script = "pwd > here; echo '{\"value\": 1}'";
  EXPECT_EQ(shop.fettle({"run", "-"}, text.yaml()).code, 0);
  EXPECT_EQ(shop.read("here"), shop.directory() + "\n");
}

TEST(FirstHour, AnAbsoluteWorkingDirectoryIsTakenAsItIs) {
  Workshop shop;
  StudyText text;
  text.script = "pwd > " + shop.path("seen") + "; echo '{\"value\": 1}'";
  text.budget = "{trials: 1}";
  text.resources = "{requests: {cpu: 10m}}\n          workingDir: /usr";
  shop.write("project/study.yaml", text.yaml());
  const Finished done = shop.fettle({"run", "project/study.yaml"});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(shop.read("seen"), "/usr\n");
}

TEST(FirstHour, ACommandWithoutAStudyTakesTheOnlyOrTheNewestOne) {
  Workshop shop;
  EXPECT_THAT(shop.fettle({"best"}).err, HasSubstr("there is no study in .fettle; fettle run"));
  shop.write("study.yaml", StudyText{}.yaml());
  ASSERT_EQ(shop.fettle({"run", "study.yaml"}).code, 0);
  const Finished only = shop.fettle({"best"});
  EXPECT_EQ(only.code, 0);
  EXPECT_THAT(only.out, HasSubstr("# value 1: digits-0"));
  EXPECT_THAT(only.err, IsEmpty());
  EXPECT_THAT(shop.fettle({"report"}).out, HasSubstr("Wrote digits.html"));
  EXPECT_THAT(shop.fettle({"status"}).out, HasSubstr("digits · succeeded"));
  EXPECT_THAT(shop.fettle({"status", "--output", "json"}).out, testing::StartsWith("[{"));

  StudyText later;
  later.name = "crumbs";
  shop.write("later.yaml", later.yaml());
  ASSERT_EQ(shop.fettle({"run", "later.yaml"}).code, 0);
  const Finished newest = shop.fettle({"trials"});
  EXPECT_THAT(newest.out, AllOf(HasSubstr("crumbs-0"), Not(HasSubstr("digits-0"))));
  EXPECT_THAT(newest.err, HasSubstr("study crumbs, the newest of 2 in .fettle"));
  EXPECT_THAT(shop.fettle({"status"}).out, AllOf(HasSubstr("crumbs"), HasSubstr("digits")));
  EXPECT_THAT(shop.fettle({"replay"}).err, HasSubstr("study crumbs"));
}

}  // namespace
}  // namespace fettle::e2e
