#include "runtime/local/store/scaling.h"

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/directory.h"
#include "base/file.h"
#include "runtime/local/store/study_lock.h"

namespace fettle::local {
namespace {

constexpr const char* kSuffix = ".workers";  // files without it are still being written

std::string directory_of(const Layout& layout) { return layout.study_directory() + "/requests"; }

}  // namespace

Status request_workers(const Layout& layout, const WorkersRequest& request) {
  if (StudyLock::holder(layout.lock()) == 0) {
    return Error{ErrorCode::kUnavailable,
                 "study " + layout.study + " is not running here; fettle run resumes it"};
  }
  FETTLE_TRY(make_directories(directory_of(layout)));
  return write_file(directory_of(layout) + "/" + request.trial + kSuffix,
                    std::to_string(request.workers));
}

std::vector<WorkersRequest> take_workers_requests(const Layout& layout) {
  std::vector<WorkersRequest> requests;
  for (const auto& entry : entries_of(directory_of(layout))) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != kSuffix) continue;
    // Moved away before it is read: a newer request that arrives meanwhile is another file and
    // stays.
    const std::filesystem::path taken = path.string() + ".taken";
    std::error_code code;
    std::filesystem::rename(path, taken, code);
    if (code) continue;
    const auto text = read_file(taken.string());
    std::filesystem::remove(taken, code);
    if (!text.ok()) continue;
    WorkersRequest request{path.stem().string(), 0};
    // A text that is no number leaves 0, and the request is dropped.
    (void)std::from_chars(text->data(), text->data() + text->size(), request.workers);
    if (request.workers > 0) requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace fettle::local
