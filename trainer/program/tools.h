// Tools of fettle-trainer besides training: --dry-run, --backends and --bench. Each prints its
// result and returns the exit code. One thread.
#pragma once

#include "trainer/program/arguments.h"

namespace fettle::trainer {

int dry_run(const Arguments& arguments);
int print_backends();
int bench(const Arguments& arguments);

}  // namespace fettle::trainer
