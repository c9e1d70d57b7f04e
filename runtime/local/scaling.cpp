#include "runtime/local/scaling.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "runtime/local/study_lock.h"

namespace fettle::local {
namespace {

constexpr const char* kSuffix = ".workers";  // files without it are not written to their end yet

std::string directory_of(const Layout& layout) { return layout.study_directory() + "/wishes"; }

}  // namespace

Status wish_workers(const Layout& layout, const WorkersWish& wish) {
  if (StudyLock::holder(layout.lock()) == 0) {
    return Error{ErrorCode::kUnavailable,
                 "study " + layout.study + " is not running here; fettle run goes on with it"};
  }
  FETTLE_TRY(make_directories(directory_of(layout)));
  return write_file(directory_of(layout) + "/" + wish.trial + kSuffix,
                    std::to_string(wish.workers));
}

std::vector<WorkersWish> take_wishes(const Layout& layout) {
  std::vector<WorkersWish> wishes;
  for (const std::filesystem::path& path : entries_of(directory_of(layout))) {
    if (path.extension() != kSuffix) continue;
    const auto text = read_file(path.string());
    std::error_code code;
    std::filesystem::remove(path, code);
    if (!text.ok()) continue;
    WorkersWish wish{path.stem().string(), 0};
    (void)std::from_chars(text->data(), text->data() + text->size(), wish.workers);
    if (wish.workers > 0) wishes.push_back(std::move(wish));
  }
  return wishes;
}

}  // namespace fettle::local
