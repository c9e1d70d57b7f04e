// kernels_bench: the ladder (ladder.h), one thread. Whole steps: `fettle-trainer --bench`.
//
//   kernels_bench [--backend cuda] [--seconds 1] [--tiny]
//
// --tiny: shapes that only show that it works.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kernels/bench/ladder.h"

namespace fettle::kernels::bench {
namespace {

// Into `backend` and `options`; whether all words were understood.
bool read_options(int count, char** words, std::string& backend, LadderOptions& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--tiny") {
      options.tiny = true;
      continue;
    }
    if (i + 1 == count) return false;
    const char* const value = words[++i];
    if (word == "--backend") {
      backend = value;
    } else if (word == "--seconds") {
      options.seconds = std::atof(value);
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
  std::fprintf(stderr, "usage: kernels_bench [--backend NAME] [--seconds S] [--tiny]\n");
  return 2;
}
