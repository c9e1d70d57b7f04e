// The suggest protocol in a test: sends lines, returns the replies.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/suggest/suggest.h"

namespace fettle::cli {

// Returns the replies to these lines, one line each.
inline std::vector<std::string> replies_to(const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out;
  EXPECT_EQ(run_suggest(in, out), 0);
  std::vector<std::string> replies;
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) replies.push_back(line);
  return replies;
}

}  // namespace fettle::cli
