// Tells a new store from one that lost its Study. Reads the disk; thread-safe.
#pragma once

#include "base/result.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

class SqliteStore;

// Success if the store of `layout` holds its Study, or nothing has run yet. kIo: the store was
// emptied, or the Study's row is gone, although trials have run: a new start would mix their files
// and results with its own.
Status check_has_study(SqliteStore& store, const Layout& layout);

}  // namespace fettle::local
