#include "cli/convert/commented_yaml.h"

#include <gtest/gtest.h>

#include "cli/convert/testing/test_experiments.h"

namespace fettle::cli {
namespace {

TEST(CommentedYaml, NotesStandAboveTheFieldThatTheyAreAbout) {
  const Json document = yaml("{a: {b: 1, c: [x, z]}, d: [{e: 1}, {f: {g: [{h: 1}]}}]}");
  EXPECT_EQ(commented_yaml(document, {{"", "a.c[1]", "one"},
                                      {"", "d[0].e", "two"},
                                      {"", "d[1].f.g[0].missing", "three"},
                                      {"", "d[1].none", "four"},
                                      {"", "", "five"}}),
            "# note: five\n"
            "# note: one\n"
            "a: {b: 1, c: [x, z]}\n"
            "d:\n"
            "# note: two\n"
            "- {e: 1}\n"
            "# note: four\n"
            "- f:\n"
            "    g:\n"
            "    # note: three\n"
            "    - {h: 1}\n");
}

TEST(CommentedYaml, ACommentAboveTheFirstFieldOfAnItemReadsBack) {
  const Json document = yaml("{a: [{b: {c: [{d: 1}, [{e: [{g: 2}]}]]}, f: 1}]}");
  const std::string text = commented_yaml(document, {{"", "a[0].b", "first"}});
  EXPECT_EQ(yaml(text), document) << text;
}

TEST(CommentedYaml, ATextCannotLeaveItsComment) {
  const std::string text = comment_lines("one\ntwo: 3\r\x01 " + std::string(200, 'x'), 2);
  EXPECT_EQ(text, "  # one two: 3 ?\n  # " + std::string(200, 'x') + "\n");
}

TEST(CommentedYaml, LongMapsHaveALineForEachField) {
  const Json document =
      yaml("{a: {b: " + std::string(60, 'x') + ", c: " + std::string(60, 'y') + "}}");
  EXPECT_EQ(
      commented_yaml(document, {{"", "a.c", "here"}}),
      "a:\n  b: " + std::string(60, 'x') + "\n  # note: here\n  c: " + std::string(60, 'y') + "\n");
}

}  // namespace
}  // namespace fettle::cli
