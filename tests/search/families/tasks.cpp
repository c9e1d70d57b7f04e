#include "tests/search/families/tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"
#include "search/testing/problems.h"
#include "tests/search/families/landscape.h"

namespace fettle::search::families {
namespace {

using testing::choice;
using testing::integer;
using testing::only_if;
using testing::real;

std::size_t pick(Random& random, std::size_t low, std::size_t high) {
  return low + static_cast<std::size_t>(random.below(high - low + 1));
}

std::string name_of(std::size_t i) { return "x" + std::to_string(i); }

std::int64_t usual_trials(std::size_t dimensions) {
  return std::clamp<std::int64_t>(30 + 5 * static_cast<std::int64_t>(dimensions), 40, 100);
}

std::vector<Json> choices(std::size_t count) {
  std::vector<Json> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back("c" + std::to_string(i));
  return out;
}

Task smooth(const Landscape& landscape, std::size_t n) {
  Task task;
  for (std::size_t i = 0; i < n; ++i) task.parameters.push_back(real(name_of(i), 0, 1));
  task.loss = landscape;
  task.trials = usual_trials(n);
  return task;
}

// Numbers of all kinds and a few choices; each choice moves the best place of the numbers.
Task mixed(Random& random) {
  const std::size_t reals = pick(random, 2, 4);
  const std::size_t integers = pick(random, 1, 3);
  const std::size_t numbers = reals + integers;
  const std::size_t n = numbers + pick(random, 1, 3);
  Task task;
  for (std::size_t i = 0; i < n; ++i) {
    const bool log = random.below(2) == 0;
    if (i < reals) {
      task.parameters.push_back(log ? real(name_of(i), 1e-5, 1, api::Scale::kLog)
                                    : real(name_of(i), -3, 7));
    } else if (i < numbers) {
      task.parameters.push_back(
          log ? integer(name_of(i), 1, 256, api::Scale::kLog)
              : integer(name_of(i), 1, static_cast<double>(pick(random, 3, 20))));
    } else {
      task.parameters.push_back(choice(name_of(i), choices(pick(random, 2, 6))));
    }
  }
  const Landscape landscape = any(random, numbers);
  const double levels = random.uniform() * 0.5;  // the effect of a choice by itself
  const double shift = random.uniform() * 0.3;   // how far it moves the best place
  const std::uint64_t key = random.bits64();
  task.loss = [=](const Place& place) {
    std::vector<double> x(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(numbers));
    double out = 0;
    for (std::size_t i = numbers; i < n; ++i) {
      Random of_choice(mix_keys(key, i), static_cast<std::uint64_t>(place[i]));
      out += levels * of_choice.uniform();
      for (double& coordinate : x) coordinate += shift * (of_choice.uniform() - 0.5);
    }
    return out + landscape(x);
  };
  task.trials = usual_trials(n);
  return task;
}

// A choice of method; each adds its own parameters to the shared parameters.
Task branches(Random& random) {
  const std::size_t methods = pick(random, 2, 4);
  const std::size_t shared = pick(random, 1, 3);
  Task task;
  task.parameters.push_back(choice("method", choices(methods)));
  for (std::size_t i = 0; i < shared; ++i) task.parameters.push_back(real(name_of(i), 0, 1));
  struct Method {
    std::size_t first, count;
    double level;
    Landscape landscape;
  };
  std::vector<Method> all;
  for (std::size_t m = 0; m < methods; ++m) {
    const std::size_t own = pick(random, 0, 3);
    all.push_back({task.parameters.size(), own, 0.4 * random.uniform(), any(random, shared + own)});
    for (std::size_t i = 0; i < own; ++i) {
      api::Parameter parameter = real("m" + std::to_string(m) + name_of(i), 0, 1);
      task.parameters.push_back(only_if(std::move(parameter), "method", {choices(methods)[m]}));
    }
  }
  task.loss = [=](const Place& place) {
    const Method& method = all[static_cast<std::size_t>(place[0])];
    std::vector<double> x(place.begin() + 1,
                          place.begin() + 1 + static_cast<std::ptrdiff_t>(shared));
    for (std::size_t i = 0; i < method.count; ++i) x.push_back(place[method.first + i]);
    return method.level + method.landscape(x);
  };
  task.trials = usual_trials(task.parameters.size());
  return task;
}

// An error rate: bad nearly everywhere, in steps of a small validation set.
Task plateau(Random& random) {
  const std::size_t n = pick(random, 2, 6);
  Task task = smooth(bowl(random, n), n);
  const double width = 0.02 + 0.1 * random.uniform();
  const double samples = static_cast<double>(pick(random, 40, 400));
  task.loss = [=, landscape = task.loss](const Place& place) {
    const double error = 0.9 * (1 - std::exp(-landscape(place) / width));
    return std::round(error * samples) / samples;
  };
  return task;
}

// A validation error: flat and low from some distance on, and there as rough as a small set of
// samples makes it.
Task jagged(Random& random) {
  const std::size_t n = pick(random, 2, 6);
  Task task = smooth(bowl(random, n), n);
  const double width = 0.05 + 0.15 * random.uniform();
  const double roughness = 0.005 + 0.02 * random.uniform();
  const double samples = static_cast<double>(pick(random, 200, 1000));
  const Landscape detail = draw(random, n);
  const double shrink = 5 + 10 * random.uniform();
  task.loss = [=, landscape = task.loss](const Place& place) {
    Place near = place;
    for (double& x : near) x *= shrink;
    const double error =
        0.05 + 0.85 * (1 - std::exp(-landscape(place) / width)) + roughness * detail(near);
    return std::round(error * samples) / samples;
  };
  return task;
}

// Resembles training: a learning rate with a cliff that depends on the momentum, regularisers with
// little effect, a size with diminishing returns, losses over decades.
Task training(Random& random) {
  Task task;
  task.parameters = {real("lr", 1e-5, 1, api::Scale::kLog),
                     real("decay", 1e-6, 1e-1, api::Scale::kLog),
                     real("momentum", 0, 0.99),
                     integer("batch", 8, 512, api::Scale::kLog),
                     integer("layers", 1, 6),
                     real("dropout", 0, 0.7),
                     choice("activation", choices(3))};
  const double rate = 0.4 + 0.35 * random.uniform();
  const double cliff = rate + 0.05 + 0.15 * random.uniform();
  const double decay = random.uniform();
  const double depth = random.uniform();
  const double drop = 0.6 * random.uniform();
  const std::vector<double> activation = {random.uniform(), random.uniform(), random.uniform()};
  task.loss = [=](const Place& p) {
    const double effective = p[0] - 0.12 * p[3] + 0.25 * p[2];
    const double off = effective - rate;
    double out = 0.05 + 1.5 * off * off + 0.05 * (p[1] - decay) * (p[1] - decay) +
                 0.15 * (p[4] - depth) * (p[4] - depth) * (1 + 2 * p[5]) +
                 0.1 * (p[5] - drop) * (p[5] - drop) +
                 0.04 * activation[static_cast<std::size_t>(p[6])];
    if (effective > cliff) out += 2 + 40 * (effective - cliff);
    return out;
  };
  task.trials = usual_trials(task.parameters.size());
  return task;
}

// A part of the space, which touches the best place of all, is infeasible.
Task holes(Random& random) {
  const std::size_t n = pick(random, 2, 6);
  Task task = smooth(any(random, n), n);
  std::vector<double> normal(n);
  for (double& x : normal) x = random.normal();
  // Goes through a random good place, so that the best is near the edge.
  Place edge(n);
  Place best;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200; ++i) {
    for (double& x : edge) x = random.uniform();
    if (task.loss(edge) < least) {
      least = task.loss(edge);
      best = edge;
    }
  }
  task.loss = [=, landscape = task.loss](const Place& place) {
    double beyond = 0;
    for (std::size_t i = 0; i < n; ++i) beyond += normal[i] * (place[i] - best[i]);
    return beyond > 0.05 ? std::numeric_limits<double>::quiet_NaN() : landscape(place);
  };
  return task;
}

// Many parameters, four with an effect.
Task wide(Random& random) {
  const std::size_t n = pick(random, 15, 25);
  Task task = smooth(nullptr, n);
  const Landscape landscape = any(random, 4);
  const std::size_t first = pick(random, 0, n - 4);
  task.loss = [=](const Place& place) {
    const auto begin = place.begin() + static_cast<std::ptrdiff_t>(first);
    return landscape({begin, begin + 4});
  };
  task.trials = 100;
  return task;
}

using Maker = std::function<Task(Random&)>;

Maker simple(Landscape (*make)(Random&, std::size_t), std::size_t low, std::size_t high) {
  return [=](Random& random) {
    const std::size_t n = pick(random, low, high);
    return smooth(make(random, n), n);
  };
}

Task noisy(Random& random) {
  const std::size_t n = pick(random, 2, 6);
  Task task = smooth(any(random, n), n);
  task.noise = 0.1 + 0.3 * random.uniform();
  return task;
}

const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> kMakers = {
      {"bowl", simple(bowl, 2, 10)},
      {"ripples", simple(ripples, 2, 8)},
      {"valley", simple(valley, 2, 8)},
      {"bumps", simple(bumps, 2, 6)},
      {"draw", simple(draw, 2, 10)},
      {"mixed", mixed},
      {"branches", branches},
      {"plateau", plateau},
      {"jagged", jagged},
      {"noisy", noisy},
      {"training", training},
      {"holes", holes},
      {"wide", wide}};
  return kMakers;
}

}  // namespace

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> kKinds = [] {
    std::vector<std::string> out;
    for (const auto& [kind, maker] : makers()) out.push_back(kind);
    return out;
  }();
  return kKinds;
}

Task make_task(const std::string& kind, std::uint64_t number) {
  for (std::size_t i = 0; i < makers().size(); ++i) {
    if (makers()[i].first != kind) continue;
    Random random(mix_keys(0x66616d696c796573, i), number);
    return makers()[i].second(random);
  }
  CHECK(false, "a kind of kinds()");
  return {};
}

}  // namespace fettle::search::families
