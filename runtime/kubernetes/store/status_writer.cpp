#include "runtime/kubernetes/store/status_writer.h"

#include <string_view>

#include "runtime/kubernetes/job/ownership.h"

namespace fettle::kubernetes {
namespace {

constexpr const char* kManager = "fettle";
// How long a field that the installed CRDs lack is omitted before it is tried again.
constexpr std::int64_t kTrustUndeclaredMs = 60'000;

// Parses the refusal of an apply, ".status.runs[run=0].resizes: field not declared in schema", to
// the path of the field below status without its selectors, "runs.resizes". "" for any other error.
std::string undeclared_field(const std::string& refusal) {
  const std::size_t end = refusal.find(": field not declared in schema");
  if (end == std::string::npos) return "";
  constexpr std::string_view kStatus = ".status.";
  const std::size_t begin = refusal.rfind(kStatus, end);
  if (begin == std::string::npos) return "";
  std::string path;
  int depth = 0;
  for (std::size_t at = begin + kStatus.size(); at < end; ++at) {
    const char c = refusal[at];
    if (c == '[') ++depth;
    if (depth == 0) path += c;
    if (c == ']') --depth;
  }
  return path;
}

// Erases the field at `path`; a segment of it that is a list stands for each item of the list.
// Returns whether there was one.
bool erase_path(Json& value, std::string_view path) {
  if (value.is_array()) {
    bool erased = false;
    for (Json& item : value.as_array()) erased = erase_path(item, path) || erased;
    return erased;
  }
  if (!value.is_object()) return false;
  const std::size_t dot = path.find('.');
  Json* member = value.find(path.substr(0, dot));
  if (member == nullptr) return false;
  if (dot != std::string_view::npos) return erase_path(*member, path.substr(dot + 1));
  value.erase(path);
  return true;
}

}  // namespace

Json envelope(const kube::Resource& resource, const api::Metadata& metadata) {
  Json meta = Json::object({{"name", metadata.name}, {"namespace", metadata.ns}});
  if (!metadata.resource_version.empty()) {
    meta.set("resourceVersion", metadata.resource_version);
  }
  return Json::object({{"apiVersion", kube::api_version(resource)},
                       {"kind", resource.kind},
                       {"metadata", std::move(meta)}});
}

Result<Json> StatusWriter::apply(const kube::Resource& resource, const api::Metadata& metadata,
                                 Json status) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [field, asked_ms] : undeclared_) {
      const bool believed = clock_.now_ms() < asked_ms + kTrustUndeclaredMs;
      if (believed && field.first == resource.plural) (void)erase_path(status, field.second);
    }
  }
  Json object = envelope(resource, metadata);
  while (true) {  // each round leaves out one more field
    object.set("status", status);
    Result<kube::Written> written =
        client_.apply(resource, key_of(metadata), "status", object, kManager);
    if (written.ok()) return std::move(written->object);
    const std::string field = undeclared_field(written.error().message);
    // Also if nothing was erased, since the same request would be refused again.
    if (field.empty() || !erase_path(status, field)) return written.error();
    const std::lock_guard lock(mutex_);
    undeclared_[{std::string(resource.plural), field}] = clock_.now_ms();
  }
}

// Written once: the entry read from the answer has the condition.
std::optional<Json> StatusWriter::report_readability(const kube::Resource& resource,
                                                     const api::Metadata& metadata,
                                                     const Readability& readability) {
  if (readability.reported) return std::nullopt;
  const Json conditions = conditions_with(readability, clock_.now_ms());
  const Json patch =
      Json::object({{"metadata", Json::object({{"resourceVersion", metadata.resource_version}})},
                    {"status", Json::object({{"conditions", conditions}})}});
  Result<kube::Written> written = client_.patch(resource, key_of(metadata), "status", patch);
  if (!written.ok()) return std::nullopt;
  return std::move(written->object);
}

}  // namespace fettle::kubernetes
