// kernels_bench: images a second of a whole training step on the Backend operations, one thread.
//
//   kernels_bench [--backend onednn] [--blocks 1] [--seconds 1] [--only mlp-fp32] [--operations]
//   kernels_bench --ladder [--backend cuda] [--seconds 1] [--tiny]
//
// With --ladder instead the operations that a GPU spends its time in, the library's version against
// ours (ladder.h); --tiny: shapes that only show that it works.
//
// One JSON line a measurement, as scripts/bench_pytorch.py prints for the peer; --operations adds
// where the time goes. Time is processor time: other processes must not count.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "kernels/bench/ladder.h"
#include "kernels/bench/network.h"

namespace fettle::kernels::bench {
namespace {

struct Options {
  std::string backend = "onednn";
  int blocks = 1;
  double seconds = 1;
  std::string only;
  bool operations = false;
  bool ladder = false;
  bool tiny = false;
};

bool read_options(int count, char** words, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--operations") {
      options.operations = true;
      continue;
    }
    if (word == "--ladder" || word == "--tiny") {
      (word == "--tiny" ? options.tiny : options.ladder) = true;
      continue;
    }
    if (i + 1 == count) return false;
    const std::string value = words[++i];
    if (word == "--backend") {
      options.backend = value;
    } else if (word == "--only") {
      options.only = value;
    } else if (word == "--blocks") {
      options.blocks = std::atoi(value.c_str());
    } else if (word == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else {
      return false;
    }
  }
  return true;
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double images_per_second(Network& network, double seconds) {
  const double start = processor_seconds();
  double steps = 0;
  double now = start;
  while (now - start < seconds) {
    network.step();
    ++steps;
    now = processor_seconds();
  }
  return steps * Network::kBatch / (now - start);
}

void print_operations(Network& network) {
  constexpr int kSteps = 50;
  network.watch();
  for (int i = 0; i < kSteps; ++i) network.step();
  for (const Timing& timing : network.timings()) {
    std::printf("  %9.1f us  %s\n", timing.nanoseconds / kSteps / 1000, timing.operation.c_str());
  }
}

void climb(Backend& backend, const Options& options) {
  LadderOptions ladder{options.seconds, options.tiny, std::nullopt, ""};
  if (backend.name() == "cuda") {
    const machine::Gpus gpus = machine::find_gpus();
    if (!gpus.all.empty()) {
      ladder.device = gpus.all.front().name;
      ladder.peak = machine::peak_of_gpu(ladder.device);
    }
  }
  climb_ladder(backend, ladder);
}

int run(const Options& options) {
  auto backend = make_backend(options.backend, 1);
  if (!backend.ok()) {
    std::fprintf(stderr, "kernels_bench: %s\n", backend.error().message.c_str());
    return 2;
  }
  if (options.ladder) {
    climb(*backend.value(), options);
    return 0;
  }
  for (const std::string model : {"mlp", "cnn", "norm"}) {
    for (const DataType type : {DataType::kFloat32, DataType::kBFloat16}) {
      const std::string precision = type == DataType::kFloat32 ? "fp32" : "bf16";
      if (!options.only.empty() && options.only != model + "-" + precision) continue;
      Network network(*backend.value(), model, type);
      for (int i = 0; i < 5; ++i) network.step();
      for (int block = 0; block < options.blocks; ++block) {
        std::printf("{\"model\": \"%s\", \"precision\": \"%s\", \"images_per_second\": %.1f}\n",
                    model.c_str(), precision.c_str(), images_per_second(network, options.seconds));
        std::fflush(stdout);
      }
      if (options.operations) print_operations(network);
    }
  }
  return 0;
}

}  // namespace
}  // namespace fettle::kernels::bench

int main(int count, char** words) {
  fettle::kernels::bench::Options options;
  if (!fettle::kernels::bench::read_options(count, words, options)) {
    std::fprintf(stderr,
                 "usage: kernels_bench [--backend NAME] [--blocks N] [--seconds S] [--only "
                 "MODEL-PRECISION] [--operations]\n       kernels_bench --ladder [--backend cuda] "
                 "[--seconds S] [--tiny]\n");
    return 2;
  }
  return fettle::kernels::bench::run(options);
}
