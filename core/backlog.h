// The trials of a Study that have begun and do not run: they wait for a queue, a quota, a node.
//
// More trials would only wait as well, and their points would be chosen by less than is known when
// there is room for them. So while one says that it waits, a Study has at most as many trials that
// do not run as those that do: its parallelism follows what there is room for. One that waits for
// its own reason keeps nobody from running. Pure; usable from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/ledger.h"

namespace fettle::core {

struct Backlog {
  std::int64_t running = 0;
  std::int64_t pending = 0;  // active, and not running
  std::int64_t waiting = 0;  // of those: the condition Waiting says what for
  std::string words;         // what the first of them says: "digits-3: ..."
};

Backlog backlog_of(const Ledger& ledger);

// How many trials may be begun: `free` is how many the budget leaves.
std::int64_t room_beside(const Backlog& backlog, std::int64_t free);

// Why nothing runs, when all trials wait; "" otherwise.
std::string why_all_wait(const Backlog& backlog);

}  // namespace fettle::core
