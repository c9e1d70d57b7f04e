// Deletes everything that is kept of a Study on this machine. Blocks; callable from any process.
#pragma once

#include "base/result.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

// Deletes the database, the runs, the logs and the checkpoints. Holds the Study's lock meanwhile,
// so no runner begins on a half-deleted Study. kUnavailable: a process of the Study lives. kIo: a
// file cannot be removed; the database is deleted first, so the remains are no Study any more.
Status delete_study(const Layout& layout);

}  // namespace fettle::local
