// Routes: what each path of `fettle serve` stands for. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/http/http_server.h"

namespace fettle::cli {

enum class Page {
  kUnknown,
  kList,      // /
  kStudy,     // /study/NAME
  kCompare,   // /compare?study=A&study=B; the page reads its own query
  kAsset,     // /assets/NAME
  kEvents,    // /events, /events?study=NAME
  kStudies,   // /api/studies
  kDocument,  // /api/study/NAME
  kInsight,   // /api/study/NAME/insight
  kLog,       // /api/trial/NAME/log
  kWhy,       // /api/trial/NAME/why
  kMetrics,   // /metrics
};

struct Route {
  Page page = Page::kUnknown;
  std::string name;  // of the Study, the trial or the asset: for a file or an object, "" = none
  bool operator==(const Route&) const = default;
};

Route route_of(const HttpRequest& request);

}  // namespace fettle::cli
