// TensorBoardFile: a run's scalars as an event file, which TensorBoard shows and follows.
//
// The format is TensorFlow's record format: a length, the masked CRC-32C of the length, an Event
// message in protobuf's wire format, and its masked CRC-32C. Only scalars are written, so the few
// fields are encoded by hand instead of with a protobuf library.
// Each event has been passed to the operating system when add() returns. Not synchronised.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/reporter/training_report.h"

namespace fettle::trainer {

class TensorBoardFile {
 public:
  // Creates the directory, and a new file in it: TensorBoard reads all files of a directory as one
  // run, so a run that resumes after a restart continues there. `seconds` since 1970, as in add().
  // Errors: the directory or the file cannot be created.
  static Result<TensorBoardFile> create(const std::string& directory, double seconds);

  // Writes one event with all metrics, each under its name. Errors: the file cannot be written.
  Status add(std::int64_t step, const Metrics& metrics, double seconds);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  TensorBoardFile(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}
  Status write(std::string_view event);

  std::string path_;
  File file_;
};

// An Event message, and a record around any message; also for tests.
std::string scalar_event(std::int64_t step, const Metrics& metrics, double seconds);
std::string record_of(std::string_view message);

}  // namespace fettle::trainer
