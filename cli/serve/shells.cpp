#include "cli/serve/shells.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/common/embedded_file.h"

namespace fettle::cli {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";

const EmbeddedFile* find_file(std::string_view name) {
  for (const auto* files : {&live_parts(), &page_parts()}) {
    const auto found = std::ranges::find(*files, name, &EmbeddedFile::name);
    if (found != files->end()) return &*found;
  }
  return nullptr;
}

std::string_view bytes_of(std::string_view name) {
  const EmbeddedFile* const file = find_file(name);
  CHECK(file != nullptr, "the page is part of the program");
  return file->bytes;
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  CHECK(at != std::string::npos, "the report's page has what the live page replaces");
  text.replace(at, what.size(), by);
}

// The element that begins so and ends with `end`.
void erase_element(std::string& text, std::string_view begin, std::string_view end) {
  const std::size_t from = text.find(begin);
  CHECK(from != std::string::npos, "the report's page has the element");
  const std::size_t to = text.find(end, from);
  CHECK(to != std::string::npos, "the element ends");
  text.erase(from, to + end.size() - from);
}

HttpAnswer html(std::string body) {
  return {.content_type = std::string(kHtml), .body = std::move(body)};
}

const std::string& live_page_of_report() {
  static const std::string kPage = live_page(bytes_of("page.html"));
  return kPage;
}

// A page of its own, with the head of the report's.
std::string page_with_head(std::string_view name, std::string_view title) {
  constexpr std::string_view kHeadEnd = "</head>";
  const std::string& report = live_page_of_report();
  std::string head = report.substr(0, report.find(kHeadEnd) + kHeadEnd.size());
  replace(head, "<title>Fettle<", "<title>" + std::string(title) + " · Fettle<");
  std::string page(bytes_of(name));
  replace(page, "{{head}}", head);
  return page;
}

}  // namespace

std::string live_page(std::string_view report_page) {
  std::string page(report_page);
  erase_element(page, "<meta name=\"generator\"", ">\n");
  erase_element(page, "<meta http-equiv=\"Content-Security-Policy\"", ">\n");  // a header says it
  replace(page, "{{title}}", "Fettle");
  replace(page, "{{data}}", "");
  replace(page, "<style>{{style.css}}</style>",
          "<link rel=\"stylesheet\" href=\"/assets/style.css\">\n"
          "<link rel=\"stylesheet\" href=\"/assets/live.css\">");
  constexpr std::string_view kOpen = "<script>{{";
  constexpr std::string_view kClose = "}}</script>";
  for (std::size_t at = page.find(kOpen); at != std::string::npos; at = page.find(kOpen, at)) {
    const std::size_t close = page.find(kClose, at);
    CHECK(close != std::string::npos, "a script of the report's page ends");
    const std::string name = page.substr(at + kOpen.size(), close - at - kOpen.size());
    page.replace(at, close + kClose.size() - at, "<script src=\"/assets/" + name + "\"></script>");
  }
  replace(page, "</body>",
          "<script src=\"/assets/stream.js\"></script>\n"
          "<script src=\"/assets/panel.js\"></script>\n"
          "<script src=\"/assets/follow.js\"></script>\n</body>");
  return page;
}

HttpAnswer list_page() { return html(page_with_head("index.html", "Studies")); }

HttpAnswer study_page() { return html(live_page_of_report()); }

HttpAnswer compare_page() { return html(page_with_head("compare.html", "Comparison")); }

HttpAnswer asset(std::string_view name) {
  const EmbeddedFile* const file = find_file(name);
  const bool is_script = name.ends_with(".js");
  if (file == nullptr || !(is_script || name.ends_with(".css"))) {
    return {.status = 404, .body = "fettle serve: there is no such file\n"};
  }
  return {.content_type = is_script ? "text/javascript; charset=utf-8" : "text/css; charset=utf-8",
          .body = std::string(file->bytes)};
}

}  // namespace fettle::cli
