// The page of `fettle report`: one HTML file that needs no other, and no network.
//
// Data and program are separate: everything about the Study is one block of JSON, which the page
// writes as text only, never as markup. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/views/view.h"

namespace fettle::cli {

// The data of the page; study.js reads it.
Json page_data(const RunView& view);

// The page with that data.
std::string render_page(const std::string& title, const Json& data);

// JSON that may stand within <script>: no "<" in it, so nothing ends the element early.
std::string script_json(const Json& data);
// Text that may stand between tags.
std::string html_text(std::string_view text);

}  // namespace fettle::cli
