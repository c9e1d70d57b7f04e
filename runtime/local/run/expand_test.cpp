// The table of Kubernetes' own expansion tests, and values that only look like references.
#include "runtime/local/run/expand.h"

#include <gtest/gtest.h>

namespace fettle::local {
namespace {

TEST(Expand, AsKubernetesDoesIt) {
  const std::map<std::string, std::string> variables = {
      {"VAR_A", "A"},    {"VAR_B", "B"},
      {"VAR_C", "C"},    {"VAR_REF", "$(VAR_A)"},
      {"VAR_EMPTY", ""}, {"ODD", "'\"\n; rm -rf $HOME `id` $(id) {{}} $$"}};
  const struct {
    const char* input;
    const char* expected;
  } cases[] = {
      {"$(VAR_A)", "A"},
      {"___$(VAR_B)___", "___B___"},
      {"$(VAR_A)$(VAR_B)$(VAR_C)", "ABC"},
      {"$(VAR_A)-1", "A-1"},
      {"$(VAR_REF)", "$(VAR_A)"},
      {"%%$(VAR_REF)--$(VAR_REF)%%", "%%$(VAR_A)--$(VAR_A)%%"},
      {"foo$(VAR_EMPTY)bar", "foobar"},
      {"foo\\$(VAR_A)bar", "foo\\Abar"},
      {"foo$$(VAR_A)bar", "foo$(VAR_A)bar"},
      {"foo$$$(VAR_A)bar", "foo$Abar"},
      {"foo$$$$(VAR_A)bar", "foo$$(VAR_A)bar"},
      {"foo$$$$$(VAR_A)bar", "foo$$Abar"},
      {"$(UNKNOWN)", "$(UNKNOWN)"},
      {"$(VAR_A", "$(VAR_A"},
      {"$(VAR_DNE)$(VAR_A", "$(VAR_DNE)$(VAR_A"},
      {"f000-$VAR_A", "f000-$VAR_A"},
      {"foo$(", "foo$("},
      {"$VAR_A)", "$VAR_A)"},
      {"${VAR_A}", "${VAR_A}"},
      {"$(VAR_B)_______$(A", "B_______$(A"},
      {"$(VAR_A)bunch of other junk)$(VAR_B", "Abunch of other junk)$(VAR_B"},
      {"$", "$"},
      {"$$", "$"},
      {"", ""},
      {"$()", "$()"},
      {"x=$(ODD)", "x='\"\n; rm -rf $HOME `id` $(id) {{}} $$"},
  };
  for (const auto& c : cases) EXPECT_EQ(expand(c.input, variables), c.expected) << c.input;
}

}  // namespace
}  // namespace fettle::local
