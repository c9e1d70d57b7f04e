// The page of `fettle report`: one HTML file that needs no other file and no network.
//
// Data and program are separate: everything about the Study is one block of JSON, which the page
// writes as text only, never as markup. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "cli/views/view.h"

namespace fettle::cli {

// Returns the data of the page; study.js reads it.
Json page_data(const RunView& view);

// Renders the page with that data.
std::string render_page(const std::string& title, const Json& data);

// Returns JSON for use within <script>: without "<", so nothing ends the element early.
std::string script_json(const Json& data);
// Escapes text for use between tags.
std::string html_text(std::string_view text);

}  // namespace fettle::cli
