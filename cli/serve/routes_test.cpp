// Paths and their pages; a name is never a way to another file.
#include "cli/serve/routes.h"

#include <gtest/gtest.h>

namespace fettle::cli {
namespace {

Route of(const std::string& path, const std::string& study = "") {
  HttpRequest request{path, {}, {}};
  if (!study.empty()) request.query["study"] = study;
  return route_of(request);
}

TEST(Routes, LeadToPages) {
  EXPECT_EQ(of("/"), (Route{Page::kList, ""}));
  EXPECT_EQ(of("/study/digits"), (Route{Page::kStudy, "digits"}));
  EXPECT_EQ(of("/compare", "digits"), (Route{Page::kCompare, ""}));
  EXPECT_EQ(of("/assets/chart.min.js"), (Route{Page::kAsset, "chart.min.js"}));
  EXPECT_EQ(of("/events"), (Route{Page::kEvents, ""}));
  EXPECT_EQ(of("/events", "digits"), (Route{Page::kEvents, "digits"}));
  EXPECT_EQ(of("/metrics"), (Route{Page::kMetrics, ""}));
}

TEST(Routes, LeadToTheApi) {
  EXPECT_EQ(of("/api/studies"), (Route{Page::kStudies, ""}));
  EXPECT_EQ(of("/api/study/digits"), (Route{Page::kDocument, "digits"}));
  EXPECT_EQ(of("/api/study/digits/insight"), (Route{Page::kInsight, "digits"}));
  EXPECT_EQ(of("/api/trial/digits-3/log"), (Route{Page::kLog, "digits-3"}));
  EXPECT_EQ(of("/api/trial/digits-3/why"), (Route{Page::kWhy, "digits-3"}));
}

TEST(Routes, TakeNoNameThatAnObjectCannotHave) {
  for (const char* path : {"/study/",
                           "/study/..",
                           "/study/../x",
                           "/study/a/b",
                           "/study/<script>",
                           "/study/A",
                           "/study/a b",
                           "/study/-a",
                           "/api/study//insight",
                           "/api/trial/../log",
                           "/api/trial/a/../../etc/passwd/log",
                           "/assets/../x.js",
                           "/assets/",
                           "/assets/A.js",
                           "/studies",
                           "/api",
                           "//",
                           "/study",
                           "/api/trial/digits-3",
                           "/api/trial//why"}) {
    EXPECT_EQ(of(path).page, Page::kUnknown) << path;
  }
  EXPECT_EQ(of("/study/" + std::string(254, 'a')).page, Page::kUnknown);
  EXPECT_EQ(of("/events", "../x").page, Page::kUnknown);
}

}  // namespace
}  // namespace fettle::cli
