// kernels_bench: the ladder (ladder.h), one thread. `fettle-trainer --bench` times whole steps.
//
//   kernels_bench [--backend cuda] [--seconds 1] [--tiny]
//
// --seconds: of each measurement, more than 0. --tiny: shapes that only show that it works.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/bench/ladder.h"

namespace fettle::kernels::bench {
namespace {

// nullopt unless it is a number of seconds that a measurement can take.
std::optional<double> read_seconds(const std::string& word) {
  char* end = nullptr;
  const double seconds = std::strtod(word.c_str(), &end);
  const bool whole = !word.empty() && *end == '\0';
  if (!whole || !std::isfinite(seconds) || seconds <= 0) return {};
  return seconds;
}

// Parses the arguments into `backend` and `options`; returns whether all were understood.
bool read_options(int count, char** words, std::string& backend, LadderOptions& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--tiny") {
      options.tiny = true;
      continue;
    }
    if (i + 1 == count) return false;  // an option without its value
    const char* const value = words[++i];
    if (word == "--backend") {
      backend = value;
    } else if (word == "--seconds") {
      const auto seconds = read_seconds(value);
      if (!seconds) return false;
      options.seconds = *seconds;
    } else {
      return false;
    }
  }
  return true;
}

int run(const std::string& name, LadderOptions options) {
  const auto backend = make_backend(name, 1);
  if (!backend.ok()) {
    std::fprintf(stderr, "kernels_bench: %s\n", backend.error().message.c_str());
    return 2;
  }
  const machine::Gpus gpus = name == "cuda" ? machine::find_gpus() : machine::Gpus{};
  if (!gpus.all.empty()) {
    options.device = gpus.all.front().name;
    options.peak = machine::peak_of_gpu(options.device);
  }
  climb_ladder(**backend, options);
  return 0;
}

}  // namespace
}  // namespace fettle::kernels::bench

int main(int count, char** words) {
  std::string backend = "onednn";
  fettle::kernels::bench::LadderOptions options;
  if (fettle::kernels::bench::read_options(count, words, backend, options)) {
    return fettle::kernels::bench::run(backend, options);
  }
  std::fprintf(stderr, "usage: kernels_bench [--backend NAME] [--seconds MORE_THAN_0] [--tiny]\n");
  return 2;
}
