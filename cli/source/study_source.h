// StudySource: finds the Studies, trials and logs of a place for commands, and changes Studies that
// run there: this machine's disk (local_source.h) or a cluster's API server (cluster_source.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/views/view.h"

namespace fettle::cli {

struct SeenStudy {
  RunView view;  // timeline: the newest events; an interrupted study as it was then
  LogHint log;
  std::int64_t now_ms = 0;  // the wall clock
};

// Receives pieces of output as they arrive.
using LogPrinter = std::function<void(std::string_view bytes)>;

// How much of a study to read.
enum class Detail { kObjects, kWithEvents };

// A study and a text that changes with it (StudySource::stamp()).
struct StudyMark {
  std::string name;
  std::string stamp;
  bool operator==(const StudyMark&) const = default;
};

class StudySource {
 public:
  virtual ~StudySource() = default;

  // "in .fettle", "in namespace team".
  virtual std::string place() const = 0;
  // "; there are Studies in ../.fettle (-C ..)", or "".
  virtual std::string elsewhere() const { return ""; }
  virtual Result<std::vector<std::string>> names() = 0;
  // Returns the study that was created last.
  virtual Result<std::string> newest() = 0;
  // Returns a text that changes whenever read() would return another study, apart from times that
  // pass; costs little. "": cannot be told, so read it.
  virtual std::string stamp(const std::string& /*study*/) { return ""; }
  // Returns all names with their stamps.
  virtual Result<std::vector<StudyMark>> marks();
  // kNotFound lists the existing studies.
  virtual Result<SeenStudy> read(const std::string& study, Detail detail) = 0;
  // Prints the output of run `run` (absent: the newest) of the trial; with `follow`, keeps printing
  // until it ends. kNotFound, in words: no such trial, no such run, no log of it.
  virtual Status print_log(const std::string& trial, std::optional<std::int64_t> run, bool follow,
                           const LogPrinter& print) = 0;
  // As print_log() of the newest run with `follow`, until `stop` is requested.
  virtual Status follow_log(const std::string& trial, const LogPrinter& print,
                            std::stop_token stop) = 0;
  // Prints the output of the newest run of a trial of `seen`, as far as it got, without reading the
  // study again. Errors: as print_log().
  virtual Status print_newest_log(const SeenStudy& seen, const std::string& trial,
                                  const LogPrinter& print);
  // Requests this number of workers for the trial. Errors: no process runs it; it is not allowed.
  virtual Status scale(const std::string& trial, std::int64_t workers) = 0;
  // Stops the study's trials, gently or, with `now`, at once. No record is lost, and the study can
  // be resumed. Returns a sentence about the effect. Errors: nobody runs it; the place cannot stop
  // at once.
  virtual Result<std::string> stop(const std::string& study, bool now) = 0;
  // Deletes the study with its trials, logs and checkpoints. kUnavailable: it runs.
  virtual Status remove(const std::string& study) = 0;
};

// Makes a source for one more thread.
using MakeSource = std::function<Result<std::unique_ptr<StudySource>>()>;

// Returns the only study, or the newest, which it then names on standard error; for a command that
// names none. kNotFound, in words: there are no studies.
Result<std::string> default_study(StudySource& source);

// Reads the study that has a trial of that name. kNotFound, in words: not a trial's name, no such
// study or no such trial in it.
Result<SeenStudy> read_study_of(StudySource& source, const std::string& trial);

// Returns the error for a trial that the study does not have.
Error no_such_trial(const SeenStudy& seen, const std::string& trial);

// Returns the error for a missing study; `place` as from StudySource::place(), `hint` says where
// else it may be.
Error no_such_study(const std::string& name, const std::string& place,
                    const std::vector<std::string>& studies, const std::string& hint);

}  // namespace fettle::cli
