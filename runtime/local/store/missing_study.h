// What it means that a store holds no Study. Reads the disk; thread-safe.
#pragma once

#include "base/result.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

class SqliteStore;

// Success if the store of `layout` holds its Study, or nothing has run yet. kIo: it was emptied, or
// the Study's row is gone, although trials have run: whoever begins anew then mixes their files and
// results with those of others.
Status check_has_study(SqliteStore& store, const Layout& layout);

}  // namespace fettle::local
