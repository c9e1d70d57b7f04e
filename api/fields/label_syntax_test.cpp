// Keys and values of labels and names of objects that Kubernetes accepts or refuses. The patterns
// of schemas agree with the functions.
#include "api/fields/label_syntax.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace fettle::api {
namespace {

const std::string kLongName(kLongestLabelName, 'a');
const std::string kLongDomain = std::string(kLongestDomain - 2, 'a') + ".b";

struct Syntax {
  const char* name;
  bool (*accepts)(std::string_view);
  std::string_view pattern;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

const std::vector<Syntax> kSyntaxes = {
    {"label_value",
     is_label_value,
     kLabelValuePattern,
     {"", "7", "NVIDIA-H100-80GB-HBM3", "a_b.c", kLongName},
     {"-a", "a-", "a b", "a/b", "ü", "a\n", "."}},
    {"label_key",
     is_label_key,
     kLabelKeyPattern,
     {"a", "nvidia.com/gpu.product", "A_b", "a-1.b/C", kLongName, "a.b/" + kLongName},
     {"", "/", "a/", "/a", "A.b/c", "a/b/c", "a..b/c", "-a/b", "a/-b", "a b", kLongName + "a",
      "a/b" + kLongName, "a\n"}},
    {"dns_subdomain",
     is_dns_subdomain,
     kDnsSubdomainPattern,
     {"nvidia", "a-1.b", "0", kLongDomain},
     {"", "A", "a_b", ".a", "a.", "a..b", "-a", "a-", "a/b", "a\n"}},
};

class LabelSyntax : public testing::TestWithParam<Syntax> {};

TEST_P(LabelSyntax, IsThatOfKubernetes) {
  const std::regex pattern{std::string(GetParam().pattern)};
  for (const std::string& text : GetParam().good) {
    EXPECT_TRUE(GetParam().accepts(text)) << text;
    EXPECT_TRUE(std::regex_match(text, pattern)) << text;
  }
  for (const std::string& text : GetParam().bad) {
    EXPECT_FALSE(GetParam().accepts(text)) << text;
    EXPECT_FALSE(std::regex_match(text, pattern)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(, LabelSyntax, testing::ValuesIn(kSyntaxes),
                         [](const auto& about) { return std::string(about.param.name); });

TEST(Labels, HaveLimitsThatNoPatternSays) {
  EXPECT_FALSE(is_label_value(kLongName + "a"));
  EXPECT_FALSE(is_dns_subdomain(kLongDomain + "b"));
  const std::string longest = kLongDomain + '/' + kLongName;
  EXPECT_TRUE(is_label_key(longest));
  EXPECT_EQ(longest.size(), kLongestLabelKey);
  EXPECT_FALSE(is_label_key('b' + kLongDomain + "/a"));
}

}  // namespace
}  // namespace fettle::api
