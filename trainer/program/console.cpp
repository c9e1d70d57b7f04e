#include "trainer/program/console.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/file.h"

namespace fettle::trainer {
namespace {

std::atomic<bool> lost{false};

// " 2" for one of several workers, "" for a single worker.
std::string speaker() {
  const char* const rank = std::getenv("RANK");
  const char* const world_size = std::getenv("WORLD_SIZE");
  const bool several = world_size != nullptr && std::string_view(world_size) != "1";
  return several && rank != nullptr ? std::string(" ") + rank : "";
}

}  // namespace

void print_line(const std::string& line) {
  const bool printed = std::printf("%s\n", line.c_str()) >= 0;
  // A report must not wait in a buffer.
  if (std::fflush(stdout) == 0 && printed) return;
  const std::string reason = system_message(errno);
  if (!lost.exchange(true)) log_line("cannot write to standard output: " + reason);
}

bool lost_a_line() { return lost; }

void log_line(const std::string& line) {
  std::fprintf(stderr, "fettle-trainer%s: %s\n", speaker().c_str(), line.c_str());
}

int code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
      return kWrongInput;
    default:
      return kFailed;
  }
}

int fail(const Error& error) {
  log_line(error.message);
  return code_of(error);
}

}  // namespace fettle::trainer
