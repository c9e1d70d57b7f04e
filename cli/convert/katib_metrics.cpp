// An Experiment's collector of metrics. Fettle reads the output of the program, from outside.
#include "api/fields/field.h"
#include "cli/convert/katib_parts.h"

namespace fettle::cli {
namespace {

// Finds Katib's default format, loss=0.1, and also nan, which Katib passes over.
constexpr const char* kDefaultRegex =
    R"(([\w|-]+)\s*=\s*([+-]?(?:\d*\.?\d+(?:[Ee][+-]?\d+)?|(?i:nan|inf))))";
// A line of JSON as Katib reads it: the values are texts.
constexpr const char* kJsonRegex = R"re("([\w%./:@-]+)"\s*:\s*"?([-+.\w]+))re";
constexpr const char* kDefaultFile = "/var/log/katib/metrics.log";
constexpr std::size_t kShownPath = 100;
constexpr const char* kTarget = "spec.trial.metrics";

void add_regex(const std::string& regex, KatibDraft& draft) {
  draft.trial.set("metrics", Json::object({{"regex", regex}}));
}

// metricsFormat, or what Katib takes instead.
void add_format(const Source& collector, const std::string& otherwise, KatibDraft& draft) {
  const Source formats = collector.member("source").member("filter").member("metricsFormat");
  const auto items = draft.reader.items(formats);
  if (items.empty()) return add_regex(otherwise, draft);
  if (const auto regex = draft.reader.text(items[0])) add_regex(*regex, draft);
  for (std::size_t i = 1; i < items.size(); ++i) {
    draft.reader.note(items[i], kTarget,
                      "a Study has one expression; join the others to it, or print JSON lines");
  }
}

void read_file(const Source& collector, KatibDraft& draft) {
  const Source at = collector.member("source").member("fileSystemPath");
  const bool json = draft.reader.text(at.member("format")) == "JSON";
  add_format(collector, json ? kJsonRegex : kDefaultRegex, draft);
  const std::string path = draft.reader.text(at.member("path")).value_or(kDefaultFile);
  const std::string shown = api::clean_text(path, kShownPath);
  draft.redirects.push_back(
      {path, "/dev/stdout", collector, kTarget,
       "Fettle reads the program's output: it now writes to /dev/stdout in place of " + shown +
           "; check that it only appends to it",
       "Fettle reads the program's output, not " + shown +
           ": print the metrics, or start the program in a shell beside `tail -F` of that file"});
}

}  // namespace

void convert_collector(const Source& spec, KatibDraft& draft) {
  const Source collector = spec.member("metricsCollectorSpec");
  SourceReader& reader = draft.reader;
  if (collector.present() && !reader.is_map(collector)) return;
  const Source at = collector.member("collector").member("kind");
  const std::string kind = reader.text(at).value_or("StdOut");
  if (kind == "StdOut") return add_format(collector, kDefaultRegex, draft);
  if (kind == "File") return read_file(collector, draft);
  reader.note(at.present() ? at : collector, kTarget,
              "Fettle reads the program's output, and has no collector " +
                  api::clean_text(kind, 40) +
                  ": print a line such as {\"step\": 1, \"loss\": 0.1} for each value, or set an "
                  "expression that finds them (docs/your-program.md)");
}

}  // namespace fettle::cli
