// fettle-trainer --predict: writes the logits of a trial's newest checkpoint into a file.
// One thread.
#pragma once

#include "trainer/program/arguments.h"

namespace fettle::trainer {

// Prints a line about the file, as JSON; for validation samples with loss and accuracy. Returns the
// exit code.
int predict(const Arguments& arguments);

}  // namespace fettle::trainer
