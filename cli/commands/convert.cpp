// fettle convert: studies from the files of another tuner, checked as by fettle validate.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "cli/commands/check.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/folder_of.h"
#include "cli/convert/convert_files.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

void print(api::Diagnostic diagnostic) {
  diagnostic.message = printable(diagnostic.message);
  std::cerr << api::to_string(diagnostic) << '\n';
}

// Reads all files; returns false if one of them cannot be read.
bool read_all(const std::vector<std::string>& files, std::vector<SourceDocument>& out) {
  bool good = true;
  for (const std::string& file : files) {
    Result<std::string> text =
        file == "-" ? Result<std::string>(read_input()) : read_file(file, api::kMaxStudyFileBytes);
    SourceDocuments read;
    if (text.ok()) {
      read = read_documents(*text, file);
    } else {
      read.diagnostics.push_back({file, 0, 0, "", text.error().message});
    }
    for (const api::Diagnostic& diagnostic : read.diagnostics) print(diagnostic);
    good = good && read.diagnostics.empty();
    std::move(read.documents.begin(), read.documents.end(), std::back_inserter(out));
  }
  return good;
}

// Returns whether the Study is valid; prints its errors and warnings.
bool is_valid(const ConvertedStudy& study, const std::string& folder) {
  const CheckedFile checked = check_study_text(study.yaml, study.file, folder, Runs::kAnywhere);
  for (const api::Diagnostic& wrong : checked.diagnostics) {
    // Its place is in a text that nobody has.
    print({study.file, 0, 0, "Study " + printable(study.name), wrong.path + ": " + wrong.message});
  }
  if (checked.diagnostics.empty()) print_warnings(checked);
  return checked.diagnostics.empty();
}

Status write_studies(const std::vector<ConvertedStudy>& studies, const std::string& output) {
  std::string text;
  for (const ConvertedStudy& study : studies) text += (text.empty() ? "" : "---\n") + study.yaml;
  if (output == "-") {
    std::cout << text << std::flush;
    return std::cout ? success() : Status(io_error("standard output cannot be written to"));
  }
  if (!studies.empty()) FETTLE_TRY(write_file(output, text));
  return success();
}

// An input is never replaced: it may be the only copy.
Status check_output(const ConvertOptions& options) {
  for (const std::string& file : options.files) {
    std::error_code code;
    if (file == "-" || !std::filesystem::equivalent(file, options.output, code) || code) continue;
    return invalid("--output is " + printable(options.output) +
                   ", one of the files to convert; name another file");
  }
  return success();
}

}  // namespace

std::vector<std::string> convert_sources() { return {"katib"}; }

Result<int> convert_command(const ConvertOptions& options) {
  FETTLE_TRY(check_output(options));
  std::vector<SourceDocument> documents;
  bool good = read_all(options.files, documents);
  ConvertedStudies converted = convert_documents(documents, options.steps);
  for (const api::Diagnostic& error : converted.errors) print(error);
  good = good && converted.errors.empty();
  const std::string folder = folder_of(options.output);
  const auto invalid = std::ranges::stable_partition(
      converted.studies, [&](const ConvertedStudy& study) { return is_valid(study, folder); });
  good = good && invalid.empty();
  converted.studies.erase(invalid.begin(), invalid.end());
  bool noted = false;
  for (const ConvertedStudy& study : converted.studies) {
    for (const api::Diagnostic& note : study.notes) print(note);
    noted = noted || !study.notes.empty();
  }
  FETTLE_TRY(write_studies(converted.studies, options.output));
  if (!good) return kExitInvalid;
  return noted ? kExitNotes : kExitSucceeded;
}

}  // namespace fettle::cli
