// main() of the tests that need real processes: the test program is also the supervisor, and the
// runner that is killed, so that no other program has to be found on disk.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/local/process/supervisor.h"
#include "runtime/local/testing/process_test.h"

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "supervise") return fettle::local::run_supervisor(std::atoi(argv[3]));
  if (mode == "runner") return fettle::local::run_victim(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
