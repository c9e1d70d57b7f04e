// A Study continues with the revision of the search that it began with. testdata/revision1.json
// holds the suggestions of the last program of the first revision, with their losses:
//   {"study": {"seed": 5, "max_trials": 48, "space": the one below}}, one trial at a time.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/test_paths.h"
#include "search/search.h"
#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

constexpr double kTolerance = 1e-6;  // as for a replay on another machine

Problem recorded_problem(std::int64_t revision) {
  Problem out = problem_of(
      {choice("kind", {"a", "b", "c"}), integer("order", 1, 2),
       real("lr", 1e-5, 1, api::Scale::kLog), only_if(real("m", 0, 1), "kind", {"b", "c"})},
      "portfolio", 5);
  out.max_trials = 48;
  out.parallelism = 1;
  out.revision = revision;
  return out;
}

bool are_close(const Json& a, const Json& b) {
  if (!a.is_number() || !b.is_number()) return a == b;
  return std::abs(a.as_double() - b.as_double()) <= kTolerance * std::abs(b.as_double());
}

// The number of recorded points that the revision suggests after the same history.
int agreeing(std::int64_t revision, const Json& recorded) {
  const auto sampler = std::move(make_sampler(recorded_problem(revision))).value();
  History history;
  int out = 0;
  for (const Json& trial : recorded.as_array()) {
    const Json& then = *trial.find("point");
    const Json now = sampler->suggest(history, 1).points.at(0);
    bool same = true;
    for (const auto& [name, value] : then.as_object()) {
      const Json* found = now.find(name);
      same = same && found != nullptr && are_close(*found, value);
    }
    out += same ? 1 : 0;
    history.trials.push_back(then);
    history.events.push_back(result(static_cast<std::int64_t>(history.trials.size()) - 1,
                                    trial.find("loss")->as_double()));
  }
  return out;
}

TEST(Revision, TheFirstRevisionSuggestsTheRecordedPoints) {
  const auto text = read_file(source_path("search/testdata/revision1.json"));
  ASSERT_TRUE(text.ok());
  const Json recorded = *parse_json(*text);
  EXPECT_EQ(agreeing(kFirstRevision, recorded), 48);
  EXPECT_LT(agreeing(kNewestRevision, recorded), 40);
}

}  // namespace
}  // namespace fettle::search
