// What fettle-trainer does besides training: --dry-run, --backends, --bench, --tune-kernels and
// --time-kernel. Each prints its result and returns the exit code. One thread.
#pragma once

#include "trainer/program/arguments.h"

namespace fettle::trainer {

int dry_run(const Arguments& arguments);
int print_backends();
int bench(const Arguments& arguments);
int tune_kernels_and_keep(const Arguments& arguments);
int time_one_kernel(const Arguments& arguments);

}  // namespace fettle::trainer
