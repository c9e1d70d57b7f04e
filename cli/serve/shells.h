// Shells: the pages of `fettle serve` and the files that they load. All of it is constant: what a
// page shows comes by events, and becomes text of the page, never markup.
#pragma once

#include <string>
#include <string_view>

#include "base/http/http_server.h"

namespace fettle::cli {

// Returns the page of the report as one that loads its parts, has no data, and follows a Study.
std::string live_page(std::string_view report_page);

HttpAnswer list_page();
HttpAnswer study_page();
HttpAnswer compare_page();
// A script or style of the pages; 404.
HttpAnswer asset(std::string_view name);

}  // namespace fettle::cli
