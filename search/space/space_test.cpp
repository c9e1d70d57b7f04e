#include "search/space/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "search/testing/problems.h"

namespace fettle::search {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

Space space_of(const std::vector<api::Parameter>& parameters) {
  Result<Space> out = Space::make(parameters);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().message);
  return std::move(out).value();
}

std::string error_of(const std::vector<api::Parameter>& parameters) {
  const Result<Space> out = Space::make(parameters);
  return out.ok() ? "" : out.error().message;
}

Json one(const api::Parameter& parameter, double unit) {
  return *space_of({parameter}).write(space_of({parameter}).from_unit({unit})).find("x");
}

TEST(Space, PlacesOfTheUnitIntervalAreValues) {
  EXPECT_EQ(one(real("x", -2, 6), 0.25), Json(0.0));
  EXPECT_EQ(one(real("x", -2, 6), 1), Json(6.0));
  EXPECT_NEAR(one(real("x", 1e-4, 1, api::Scale::kLog), 0.5).as_double(), 1e-2, 1e-12);
  EXPECT_EQ(one(integer("x", 1, 4), 0.2499), Json(1));
  EXPECT_EQ(one(integer("x", 1, 4), 0.25), Json(2));
  EXPECT_EQ(one(integer("x", 1, 4), 1), Json(4));
  EXPECT_EQ(one(stepped("x", 0.1, 0.5, 0.1), 0.5), Json(0.3));  // not 0.30000000000000004
  EXPECT_EQ(one(stepped("x", 0, 1, 0.4), 1), Json(0.8));        // the last step that fits
  EXPECT_EQ(one(choice("x", {"a", 7}), 0.7), Json(7));
  EXPECT_EQ(one(boolean("x"), 0.4), Json(false));
}

// People write the middle of a scale themselves: 0.001, not 0.0010000000000000002.
TEST(Space, TheMiddleOfAScaleIsAShortDecimal) {
  const auto middle = [](const api::Parameter& parameter) {
    const Space space = space_of({parameter});
    return *space.write(space.middle()).find("x");
  };
  EXPECT_EQ(middle(real("x", 1e-6, 1, api::Scale::kLog)), Json(0.001));
  EXPECT_EQ(middle(real("x", 1e-5, 1e-1, api::Scale::kLog)), Json(0.001));
  EXPECT_EQ(middle(real("x", 0.1, 0.5)), Json(0.3));
  EXPECT_EQ(middle(integer("x", 1, 5)), Json(3));
  EXPECT_EQ(middle(choice("x", {"a", "b", "c"})), Json("b"));
  const Space branch = space_of({choice("x", {"a", "b"}), only_if(real("y", 0, 1), "x", {"a"})});
  EXPECT_EQ(branch.write(branch.middle()).find("y"), nullptr);
}

TEST(Space, LogarithmicIntegersHaveCellsAsWideAsTheirRounding) {
  const Dimension dimension = *Dimension::make(integer("x", 1, 100, api::Scale::kLog));
  const double range = std::log(100.5) - std::log(0.5);
  EXPECT_NEAR(dimension.to_unit(0).high, (std::log(1.5) - std::log(0.5)) / range, 1e-12);
  EXPECT_EQ(dimension.to_unit(0).low, 0);
  EXPECT_EQ(dimension.to_unit(99).high, 1);
  for (double cell = 0; cell < 100; ++cell) {
    EXPECT_EQ(dimension.from_unit(dimension.to_unit(cell).centre()), cell);
  }
}

TEST(Space, ExtremeRangesStayWithinTheirBounds) {
  const double largest = std::numeric_limits<double>::max();
  const std::vector<api::Parameter> parameters = {
      real("wide", -largest, largest),
      real("log", 1e-15, 1e15, api::Scale::kLog),
      real("one", 0.1, 0.1),
      real("tiny", 1, std::nextafter(1, 2)),
      integer("huge", -9007199254740992.0, 9007199254740992.0),
      real("subnormal", 5e-324, 1e-300, api::Scale::kLog)};
  const Space space = space_of(parameters);
  Random random(3);
  std::set<int> decades;
  for (int i = 0; i < 2000; ++i) {
    const Json point = space.write(space.draw(random));
    ASSERT_EQ(complaint(parameters, point), "") << point.dump();
    decades.insert(static_cast<int>(std::floor(std::log10(point.find("log")->as_double()))));
  }
  EXPECT_EQ(decades.size(), 30U);
}

TEST(Space, PointsOfRandomSpacesAreValidAndReadBack) {
  Random random(11);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<api::Parameter> parameters = random_space(random, 8, false);
    const Space space = space_of(parameters);
    for (int draw = 0; draw < 10; ++draw) {
      const Point point = space.draw(random);
      const Json written = space.write(point);
      ASSERT_EQ(complaint(parameters, written), "") << written.dump();
      const std::optional<Point> read = space.read(written);
      ASSERT_TRUE(read) << written.dump();
      ASSERT_EQ(space.key(*read), space.key(point)) << written.dump();
    }
  }
}

TEST(Space, EveryPointOfAFiniteSpaceHasOneNumber) {
  Random random(12);
  for (int i = 0; i < 500; ++i) {
    const std::vector<api::Parameter> parameters = random_space(random, 6, true);
    const Space space = space_of(parameters);
    std::set<std::string> expected;
    for (const Json& point : enumerate(parameters)) {
      expected.insert(space.write(*space.read(point)).dump());
    }
    std::set<std::string> found;
    std::set<std::uint64_t> keys;
    for (std::uint64_t index = 0; index < space.size(); ++index) {
      found.insert(space.write(space.at(index)).dump());
      keys.insert(space.key(space.at(index)));
    }
    ASSERT_EQ(found, expected);
    ASSERT_EQ(space.size(), expected.size());
    ASSERT_EQ(keys.size(), expected.size());
  }
}

TEST(Space, CountsWithoutListing) {
  std::vector<api::Parameter> grid;
  for (int i = 0; i < 9; ++i) grid.push_back(integer("p" + std::to_string(i), 0, 9));
  EXPECT_EQ(space_of(grid).size(), 1'000'000'000U);
  EXPECT_EQ(space_of(grid).write(space_of(grid).at(123'456'789)).dump(),
            R"({"p0":1,"p1":2,"p2":3,"p3":4,"p4":5,"p5":6,"p6":7,"p7":8,"p8":9})");
  for (int i = 9; i < 128; ++i) grid.push_back(integer("p" + std::to_string(i), 0, 9));
  EXPECT_EQ(space_of(grid).size(), Space::kUnbounded);
  EXPECT_FALSE(space_of(grid).finite());
  EXPECT_EQ(space_of(grid).write(space_of(grid).at(7)).find("p127")->as_integer(), 7);
}

// A sum of unbounded sizes is unbounded, not 0: momentum of two of three optimisers.
TEST(Space, ContinuaUnderTwoValuesAreUnbounded) {
  for (const auto& values : {std::vector<Json>{"sgd", "rmsprop"}, std::vector<Json>{"sgd"}}) {
    const Space space = space_of({choice("optimizer", {"sgd", "adam", "rmsprop"}),
                                  only_if(real("momentum", 0, 1), "optimizer", values)});
    EXPECT_EQ(space.size(), Space::kUnbounded);
    EXPECT_FALSE(space.finite());
  }
}

TEST(Space, AConditionOnOneOfABillionValuesCountsThatOne) {
  const Space space = space_of(
      {integer("n", 1, 1'000'000'000), only_if(choice("c", {"a", "b", "c"}), "n", {5, 7})});
  EXPECT_EQ(space.size(), 1'000'000'004U);
  EXPECT_EQ(space.write(space.at(3)).dump(), R"({"n":4})");
  EXPECT_EQ(space.write(space.at(5)).dump(), R"({"n":5,"c":"b"})");
  EXPECT_EQ(space.write(space.at(7)).dump(), R"({"n":6})");
  EXPECT_EQ(space.write(space.at(10)).dump(), R"({"n":7,"c":"c"})");
  EXPECT_EQ(space.write(space.at(1'000'000'003)).dump(), R"({"n":1000000000})");
}

TEST(Space, AContinuumBecomesPointsWithBothEnds) {
  const Space space = space_of({real("x", 1e-4, 1e-1, api::Scale::kLog)}).with_points(4);
  std::vector<double> values;
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    values.push_back(space.write(space.at(i)).find("x")->as_double());
  }
  EXPECT_EQ(values, (std::vector<double>{1e-4, 1e-3, 1e-2, 1e-1}));
  EXPECT_TRUE(space.read(space.write(space.at(2))));
}

// The length of this range exceeds the largest double.
TEST(Space, PointsOfTheWidestRangeAreReadAsWritten) {
  const Space space = space_of({real("x", -1e308, 1e308)}).with_points(3);
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    const auto read = space.read(space.write(space.at(i)));
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(space.key(*read), space.key(space.at(i))) << i;
  }
}

TEST(Space, OneAndOnePointZeroAreOneNumber) {
  const Space space = space_of({real("x", 0, 2), integer("n", 0, 5), choice("c", {1, "1"})});
  const auto read = [&](const char* text) { return space.read(*parse_json(text)); };
  ASSERT_TRUE(read(R"({"x":1,"n":2.0,"c":1.0})"));
  EXPECT_EQ(space.key(*read(R"({"x":1,"n":2.0,"c":1.0})")),
            space.key(*read(R"({"c":1,"n":2,"x":1.0})")));
  EXPECT_NE(space.key(*read(R"({"x":1,"n":2,"c":1})")),
            space.key(*read(R"({"x":1,"n":2,"c":"1"})")));
  EXPECT_EQ(space.key(*read(R"({"x":-0.0,"n":0,"c":1})")),
            space.key(*read(R"({"x":0,"n":0,"c":1})")));
}

TEST(Space, PointsOutsideTheSpaceAreNotRead) {
  const Space space =
      space_of({choice("o", {"sgd", "adam"}), only_if(stepped("m", 0, 1, 0.25), "o", {"sgd"})});
  EXPECT_TRUE(space.read(*parse_json(R"({"o":"sgd","m":0.5})")));
  for (const char* foreign :
       {R"({"o":"adam","m":0.5})", R"({"o":"sgd"})", R"({"o":"lion"})", R"({"o":"sgd","m":0.3})",
        R"({"o":"sgd","m":2})", R"({"o":"sgd","m":"x"})", R"({"o":"adam","q":1})", R"([])"}) {
    EXPECT_FALSE(space.read(*parse_json(foreign))) << foreign;
  }
}

TEST(Space, ErrorsNameTheParameterAndTheFault) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::vector<api::Parameter>, std::string>> cases = {
      {{real("x", 2, 1)}, "parameter \"x\": the lower bound 2 is above the upper bound 1"},
      {{real("x", nan, 1)}, "must be finite"},
      {{real("x", 0, 1, api::Scale::kLog)}, "lower bound above 0; found 0"},
      {{stepped("x", 0, 1, 0)}, "the step must be a number above 0; found 0"},
      {{stepped("x", 0, 1, -1)}, "the step must be a number above 0; found -1"},
      {{stepped("x", 0, 1e300, 1e-300)}, "too small for a range"},
      {{integer("x", 0.5, 3)}, "whole numbers up to 2^53; found 0.5"},
      {{choice("x", {})}, "no values to choose from"},
      {{choice("x", {1, "a", 1.0})}, "the choice 1 comes twice"},
      {{choice("x", {Json::array()})}, "must be a string, number or Boolean; found array"},
      {{real("", 0, 1)}, "has no name"},
      {{real("x", 0, 1), boolean("x")}, "parameter \"x\" is declared twice"},
      {{only_if(real("x", 0, 1), "y", {1}), integer("y", 0, 1)}, "not a parameter declared before"},
      {{only_if(real("x", 0, 1), "x", {1})}, "not a parameter declared before"},
      {{real("y", 0, 1), only_if(real("x", 0, 1), "y", {1})}, "no list of values"},
      {{boolean("y"), only_if(real("x", 0, 1), "y", {})}, "lists no value"},
      {{boolean("y"), only_if(real("x", 0, 1), "y", {"yes"})}, "\"yes\", which it never has"},
  };
  for (const auto& [parameters, expected] : cases) {
    EXPECT_THAT(error_of(parameters), HasSubstr(expected));
  }
}

TEST(Space, GroupsAreParametersUnderOneCondition) {
  const Space space =
      space_of({choice("o", {"sgd", "adam"}), real("lr", 0, 1),
                only_if(real("m", 0, 1), "o", {"sgd"}), only_if(boolean("n"), "o", {"sgd"}),
                only_if(real("b", 0, 1), "o", {"adam"}), only_if(real("d", 0, 1), "n", {true})});
  const std::vector<std::vector<std::size_t>> expected = {{0, 1}, {2, 3}, {4}, {5}};
  EXPECT_EQ(space.groups(), expected);
}

}  // namespace
}  // namespace fettle::search
