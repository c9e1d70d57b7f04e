#include "cli/common/exit_code.h"

#include <iostream>

namespace fettle::cli {

int complain(const Error& error) {
  std::cerr << "fettle: " << error.message << '\n';
  return exit_code_of(error.code);
}

}  // namespace fettle::cli
