// The pages' constant bytes: they hold no data, no inline script, and nothing from elsewhere.
#include "cli/serve/shells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cli/common/embedded_file.h"

namespace fettle::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

class ShellTest : public testing::TestWithParam<HttpAnswer (*)()> {};

TEST_P(ShellTest, LoadsItsPartsFromHere) {
  const HttpAnswer page = GetParam()();
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  const auto parts = matches(page.body, "(?:src|href)=\"/assets/([^\"]*)\"");
  EXPECT_GE(parts.size(), 4U);
  for (const std::string& part : parts) EXPECT_EQ(asset(part).status, 200) << part;
  EXPECT_THAT(page.body, Not(HasSubstr("{{")));
  EXPECT_THAT(page.body, Not(HasSubstr("http")));
}

TEST_P(ShellTest, HasOneHeadWithATitle) {
  const std::string page = GetParam()().body;
  EXPECT_TRUE(page.starts_with("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset"));
  EXPECT_THAT(matches(page, "(</?head>)"), testing::ElementsAre("<head>", "</head>"));
  EXPECT_THAT(matches(page, "<title>(?:[A-Z][a-z]* · )?(Fettle)</title>"), testing::SizeIs(1));
}

// The policy of the pages (access.h) runs no such thing.
TEST_P(ShellTest, HasNoScriptOrStyleOfItsOwn) {
  const std::string page = GetParam()().body;
  EXPECT_THAT(matches(page, "(<style)"), testing::IsEmpty());
  EXPECT_THAT(matches(page, "( style=)"), testing::IsEmpty());
  EXPECT_THAT(matches(page, "( on[a-z]+=)"), testing::IsEmpty());
  EXPECT_THAT(page, Not(HasSubstr("Content-Security-Policy")));
  for (const std::string& tag : matches(page, "<script([^>]*)>")) {
    EXPECT_TRUE(tag.starts_with(" src=") || tag == " type=\"application/json\" id=\"data\"") << tag;
  }
}

INSTANTIATE_TEST_SUITE_P(Pages, ShellTest, testing::Values(list_page, study_page, compare_page));

TEST(Shells, TheStudyPageHasAllScriptsOfTheReportAndNoData) {
  const std::string page = study_page().body;
  for (const EmbeddedFile& part : page_parts()) {
    if (part.name.ends_with(".html") || part.name.ends_with(".css")) continue;
    EXPECT_THAT(page, HasSubstr(std::string(part.name)));
  }
  EXPECT_THAT(page, HasSubstr("id=\"data\"></script>"));
}

TEST(Shells, AssetsAreScriptsAndStylesOnly) {
  EXPECT_EQ(asset("follow.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(asset("style.css").content_type, "text/css; charset=utf-8");
  for (const char* name : {"page.html", "index.html", "nothing.js", ""}) {
    EXPECT_EQ(asset(name).status, 404) << name;
  }
}

}  // namespace
}  // namespace fettle::cli
