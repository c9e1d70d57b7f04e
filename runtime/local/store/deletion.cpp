#include "runtime/local/store/deletion.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/local/store/study_lock.h"

namespace fettle::local {
namespace {

namespace fs = std::filesystem;

Status remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);  // a link is removed, but not its target
  if (error) return io_error(path + " cannot be removed: " + error.message());
  return success();
}

}  // namespace

Status delete_study(const Layout& layout) {
  // wait_ms 0: a supervisor that is still cleaning up is an error, too.
  FETTLE_ASSIGN(const StudyLock lock, StudyLock::acquire(layout.lock(), {.wait_ms = 0, .say = {}}));
  for (const char* const suffix : {"", "-wal", "-shm"}) {
    FETTLE_TRY(remove(layout.database() + suffix));
  }
  FETTLE_TRY(remove(layout.study_directory()));
  FETTLE_TRY(remove(layout.lock() + ".runner"));  // last, since `lock` holds these files
  return remove(layout.lock());
}

}  // namespace fettle::local
