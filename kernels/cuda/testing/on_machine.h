// Puts an emulated machine in the place of the one that is there, for a scope.
#pragma once

#include "kernels/emulator/emulator.h"

namespace fettle::kernels::cuda {

class OnMachine {
 public:
  explicit OnMachine(const emulator::Machine& machine) : before_(emulator::set_machine(machine)) {}
  ~OnMachine() { emulator::set_machine(before_); }
  OnMachine(const OnMachine&) = delete;
  OnMachine& operator=(const OnMachine&) = delete;

 private:
  const emulator::Machine before_;
};

}  // namespace fettle::kernels::cuda
