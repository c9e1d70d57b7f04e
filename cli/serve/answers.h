// Answers of the API: each reads Studies, which may take long (jobs.h).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/http/http_server.h"
#include "cli/serve/feeds/study_list.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

// {"error": message}, with the status that goes with the code.
HttpAnswer error_answer(const Error& error);
HttpAnswer json_answer(const Json& json);

// The document of `fettle export`, with an ETag; 304 if `known` (If-None-Match) names it.
HttpAnswer document_answer(StudySource& source, const std::string& study, std::string_view known);
// {"insights": [...]}.
HttpAnswer insight_answer(StudySource& source, const std::string& study);
// {"text"}: what `fettle why` prints.
HttpAnswer why_answer(StudySource& source, const std::string& trial);
// The output of the trial's newest run as it is now, from byte `from` on.
HttpAnswer log_answer(StudySource& source, const std::string& trial, std::uint64_t from);
// {"studies": [rows of the list]}.
HttpAnswer studies_answer(StudySource& source, StudyList& list);
// Prometheus' text format.
HttpAnswer metrics_answer(StudySource& source, StudyList& list);

// Pure: the metrics of these rows.
std::string metrics_text(const std::map<std::string, StudyList::Row>& rows);

}  // namespace fettle::cli
