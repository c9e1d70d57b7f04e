#include "kube/objects/resource.h"

#include <gtest/gtest.h>

namespace fettle::kube {
namespace {

TEST(Resource, LivesWhereTheApiServerKeepsIt) {
  EXPECT_EQ(path_of(kJobs, "team", "digits-0-r0", "status"),
            "/apis/batch/v1/namespaces/team/jobs/digits-0-r0/status");
  EXPECT_EQ(path_of(kPods, "team"), "/api/v1/namespaces/team/pods");
  EXPECT_EQ(path_of(kTrials, ""), "/apis/fettle.dev/v1alpha1/trials");
  EXPECT_EQ(path_of(kPods, "a/b", "c?d"), "/api/v1/namespaces/a%2Fb/pods/c%3Fd");
  EXPECT_EQ(api_version(kPods), "v1");
  EXPECT_EQ(api_version(kLeases), "coordination.k8s.io/v1");
}

TEST(Resource, VersionsCompareAsNumbersOfAnyLength) {
  struct Case {
    const char* version;
    const char* than;
    bool newer;
  };
  for (const Case& c :
       {Case{"2", "1", true}, Case{"10", "9", true}, Case{"9", "10", false}, Case{"7", "7", false},
        Case{"1", "", true}, Case{"", "1", false}, Case{"", "", false}, Case{"1", "0", true},
        Case{"0", "1", false}, Case{"x1", "1", false}, Case{"1", "x1", true},
        Case{"99999999999999999999999", "9", true}}) {
    EXPECT_EQ(is_newer(c.version, c.than), c.newer) << c.version << " and " << c.than;
  }
}

}  // namespace
}  // namespace fettle::kube
