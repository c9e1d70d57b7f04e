#include "runtime/kubernetes/gpu/catalogue.h"

#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace fettle::kubernetes {
namespace {

Result<std::vector<api::GpuProfile>> parse(const std::string& text) {
  FETTLE_ASSIGN(const Json list, parse_json(text));
  return api::read_gpu_profiles(list);
}

std::string names_of(const std::vector<api::GpuProfile>& profiles) {
  std::string names;
  for (const api::GpuProfile& profile : profiles) {
    names += (names.empty() ? "" : ", ") + profile.name;
  }
  return names.empty() ? "none: whole GPUs of nvidia.com/gpu" : names;
}

}  // namespace

GpuCatalogue::GpuCatalogue(std::string path, Notify notify)
    : path_(std::move(path)), notify_(std::move(notify)) {}

Result<GpuCatalogue::Profiles> GpuCatalogue::profiles(std::int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  if (!was_read_ || now_ms - read_ms_ >= kAgainMs) read(now_ms);
  if (profiles_ != nullptr) return profiles_;
  return Error{ErrorCode::kUnavailable,
               "the operator's GPU profiles cannot be used; an administrator must correct the "
               "chart's gpuProfiles: " +
                   error_};
}

std::int64_t GpuCatalogue::changed_ms() const {
  const std::lock_guard lock(mutex_);
  return changed_ms_;
}

void GpuCatalogue::read(std::int64_t now_ms) {
  const Result<std::string> text = read_file(path_);
  const bool same = text.ok() && was_read_ && *text == text_;
  was_read_ = true;
  read_ms_ = now_ms;
  if (same) return;
  Result<std::vector<api::GpuProfile>> list =
      text.ok() ? parse(*text) : Result<std::vector<api::GpuProfile>>(text.error());
  text_ = text.ok() ? *text : "";
  if (!list.ok()) {
    const bool news = error_ != list.error().message;
    error_ = list.error().message;
    if (news && notify_) notify_(/*is_wrong=*/true, error_);
    return;
  }
  error_.clear();
  if (notify_) notify_(/*is_wrong=*/false, names_of(*list));
  // A cluster whose administrator names no profiles is assumed to have whole GPUs.
  if (list->empty()) list = api::default_gpu_profiles();
  if (profiles_ != nullptr) changed_ms_ = now_ms;  // the first list replaces none
  profiles_ = std::make_shared<const std::vector<api::GpuProfile>>(std::move(list).value());
}

}  // namespace fettle::kubernetes
