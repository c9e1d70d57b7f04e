// Backlog: the trials of a Study that were created and do not run yet, because they wait for a
// queue, a quota or a node.
//
// A trial that is created while others wait would wait as well, and its point would rest on fewer
// results than are known once there is room. So while at least one trial says that it waits, new
// trials are created only as long as fewer trials are pending than running: parallelism follows
// the room that there is. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/study/ledger.h"

namespace fettle::core {

struct Backlog {
  std::int64_t running = 0;
  std::int64_t pending = 0;  // active, and not running
  std::int64_t told = 0;     // running or pending trials with the condition Waiting (meeting.h)
  std::int64_t waiting = 0;  // pending trials that wait for room
  std::string words;         // why the first of them waits: "digits-3: ..."
};

Backlog backlog_of(const Ledger& ledger);

// How many of the `free` trials that the budget leaves may be created.
std::int64_t room_beside(const Backlog& backlog, std::int64_t free);

// Why nothing trains, when all trials wait; "" otherwise.
std::string why_all_wait(const Backlog& backlog);

}  // namespace fettle::core
