// AssignmentPipe: the lines that a worker process is sent, by the worker protocol
// (docs/worker-protocol.md).
//
// Lines that the worker has not read yet wait here, so a worker that reads nothing blocks nobody.
// Owned by the supervisor's poll loop; not synchronised; nothing blocks.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/local/process/supervisor_wire.h"

namespace fettle::local {

class AssignmentPipe {
 public:
  // Without a free descriptor, reading_end() is -1 and every line is dropped.
  AssignmentPipe();
  ~AssignmentPipe();
  AssignmentPipe(const AssignmentPipe&) = delete;
  AssignmentPipe& operator=(const AssignmentPipe&) = delete;

  // The descriptor for the process; close_reading_end() once that has inherited it.
  int reading_end() const { return read_; }
  void close_reading_end();

  void send(std::string_view line);
  // No lines follow: closes the pipe once all have been written.
  void finish();
  // Whether the worker has closed its end, so it gets nothing.
  bool is_lost() const;
  // Adds the descriptor if lines wait to be written.
  void add_poll(std::vector<pollfd>& polls) const;
  // Writes the waiting lines as far as the pipe takes them.
  void flush();

 private:
  int read_ = -1;
  int write_ = -1;
  std::string unsent_;
  bool finished_ = false;
};

// The line that assigns the run of a kStart or kAssign.
std::string assignment_line(const SupervisorCommand& command);
std::string stop_line(const RunKey& run);
// The name of a run in the protocol.
std::string name_in_protocol(const RunKey& run);

}  // namespace fettle::local
