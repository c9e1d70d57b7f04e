// fettle-trainer --export: writes the network of a trial's newest checkpoint for other programs.
// One thread.
#pragma once

#include "trainer/program/arguments.h"

namespace fettle::trainer {

// Prints a line about the files, as JSON. Returns the exit code.
int export_model(const Arguments& arguments);

}  // namespace fettle::trainer
