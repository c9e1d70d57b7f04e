// fettle-trainer: trains one trial with the built-in trainer; --help lists its options.
#include <cstdio>
#include <new>

#include "trainer/program/arguments.h"
#include "trainer/program/console.h"
#include "trainer/program/export.h"
#include "trainer/program/predict.h"
#include "trainer/program/tools.h"
#include "trainer/program/train.h"
#include "trainer/program/worker.h"

namespace fettle::trainer {
namespace {

int run(int argc, char** argv) {
  const Result<Arguments> arguments = read_arguments(argc, argv);
  if (!arguments.ok()) return fail(arguments.error());
  if (arguments->help) return std::fputs(help_text().c_str(), stdout) < 0 ? kFailed : 0;
  if (arguments->version) {
    print_line("fettle-trainer " FETTLE_VERSION);
    return 0;
  }
  if (arguments->backends) return print_backends();
  if (arguments->benches) return bench(*arguments);
  if (arguments->slots && !arguments->worker) {
    return fail(invalid("--slots is for --worker, which trains several trials at once"));
  }
  if (arguments->worker) return run_worker(arguments->slots);
  if (!arguments->inputs.empty() && arguments->predict.empty()) {
    return fail(invalid("--inputs is for --predict, which takes samples from there"));
  }
  if (!arguments->predict.empty()) return predict(*arguments);
  if (!arguments->export_to.empty()) return export_model(*arguments);
  if (arguments->file.empty()) {
    return fail(invalid("no trial: set FETTLE_TRIAL or name a file; see fettle-trainer --help"));
  }
  if (arguments->dry_run) return dry_run(*arguments);
  return train_here(*arguments, argv);
}

}  // namespace
}  // namespace fettle::trainer

int main(int argc, char** argv) {
  try {
    return fettle::trainer::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "fettle-trainer: out of memory; a smaller training.maxPerWorker or model needs less\n",
        stderr);
    return fettle::trainer::kFailed;
  }
}
