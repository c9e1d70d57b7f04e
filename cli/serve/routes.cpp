#include "cli/serve/routes.h"

#include <algorithm>
#include <array>

#include "api/fields/label_syntax.h"

namespace fettle::cli {
namespace {

// A path "<before>NAME<after>".
struct Form {
  std::string_view before;
  std::string_view after;
  Page page;
};
constexpr std::array kForms = {
    Form{"/study/", "", Page::kStudy},        Form{"/api/study/", "/insight", Page::kInsight},
    Form{"/api/study/", "", Page::kDocument}, Form{"/api/trial/", "/log", Page::kLog},
    Form{"/api/trial/", "/why", Page::kWhy},
};

bool is_asset_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
  });
}

Route events_of(const HttpRequest& request) {
  const std::string name(request.query_value("study"));
  if (!name.empty() && !api::is_dns_subdomain(name)) return {};
  return {Page::kEvents, name};
}

}  // namespace

Route route_of(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (path == "/") return {Page::kList, ""};
  if (path == "/compare") return {Page::kCompare, ""};
  if (path == "/events") return events_of(request);
  if (path == "/api/studies") return {Page::kStudies, ""};
  if (path == "/metrics") return {Page::kMetrics, ""};
  constexpr std::string_view kAssets = "/assets/";
  if (path.starts_with(kAssets) && is_asset_name(path.substr(kAssets.size()))) {
    return {Page::kAsset, std::string(path.substr(kAssets.size()))};
  }
  for (const Form& form : kForms) {
    if (path.size() <= form.before.size() + form.after.size()) continue;
    if (!path.starts_with(form.before) || !path.ends_with(form.after)) continue;
    const std::string_view name =
        path.substr(form.before.size(), path.size() - form.before.size() - form.after.size());
    if (api::is_dns_subdomain(name)) return {form.page, std::string(name)};
  }
  return {};
}

}  // namespace fettle::cli
