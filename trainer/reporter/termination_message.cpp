#include "trainer/reporter/termination_message.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "api/trial/report.h"
#include "base/file.h"

namespace fettle::trainer {

std::string termination_message(EpochReport report) {
  report.implementations = {};  // they are in the log
  std::string line = to_line(report);
  while (line.size() > api::kMaxTerminationMessage && !report.metrics.empty()) {
    report.metrics.pop_back();
    line = to_line(report);
  }
  if (line.size() <= api::kMaxTerminationMessage) return line;
  report.checkpoint.clear();
  return to_line(report);
}

Status write_termination_message(const std::string& path, const std::string& message) {
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return not_found(path + " is not there");
  if (file < 0) return io_error(path + ": " + system_message(errno));
  const ssize_t written = ::write(file, message.data(), message.size());
  const int code = errno;
  ::close(file);
  if (written == static_cast<ssize_t>(message.size())) return success();
  return io_error(path + ": " + (written < 0 ? system_message(code) : "was cut off"));
}

}  // namespace fettle::trainer
