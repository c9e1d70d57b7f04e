// PythonModule: a module of the Python package that reads documents, one a line, on its standard
// input (python/fettle/export, python/fettle/importers).
//
// The interpreter is FETTLE_PYTHON, or python3. The package beside this program goes in front of
// PYTHONPATH, so that both have one version; without it, an installed package is found. The
// module shares this process's standard output and error. One thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fettle::cli {

class PythonModule {
 public:
  // Starts `python3 -m name arguments...`. kUnavailable: there is no such interpreter.
  static Result<PythonModule> start(const std::string& name,
                                    const std::vector<std::string>& arguments);
  // Closes its input and waits for its end.
  ~PythonModule();
  PythonModule(PythonModule&& other) noexcept;
  PythonModule& operator=(PythonModule&&) = delete;

  // Writes the document and a line feed. False: the module does not read any more.
  bool write_line(std::string_view document);
  // Ends its input and returns its exit code. kUnavailable: it did not end by itself.
  Result<int> finish();

 private:
  PythonModule(pid_t pid, int input) : pid_(pid), input_(input) {}

  pid_t pid_;  // 0: waited for already
  int input_;  // -1: closed already
};

}  // namespace fettle::cli
