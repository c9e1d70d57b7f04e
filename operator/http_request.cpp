#include "operator/http_request.h"

#include <algorithm>
#include <cctype>

namespace fettle::op {

namespace {

using State = HttpRequestHead::State;

HttpRequestHead bad(int status) { return {State::kBad, status, false, ""}; }

// The end of the head: an empty line, with or without carriage returns; npos when it has not come.
std::size_t end_of_head(std::string_view received) {
  return std::min(received.find("\r\n\r\n"), received.find("\n\n"));
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// A GET may announce a body; we take none.
bool announces_body(std::string_view headers) {
  const std::string text = "\n" + lower(headers);
  const std::size_t length = text.find("\ncontent-length:");
  if (text.find("\ntransfer-encoding:") != std::string::npos) return true;
  if (length == std::string::npos) return false;
  const std::size_t value = text.find_first_not_of(" \t", length + 16);
  return value == std::string::npos || text[value] != '0';
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

HttpRequestHead read_request_head(std::string_view received) {
  const std::size_t end = end_of_head(received);
  if (end == std::string_view::npos) return {};
  const std::string_view head = received.substr(0, end);
  std::string_view line = head.substr(0, head.find('\n'));
  const std::string_view headers =
      line.size() < head.size() ? head.substr(line.size() + 1) : std::string_view();
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last <= first) return bad(400);
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (target.empty() || target.front() != '/' || !is_printable(target)) return bad(400);
  if (version.substr(0, 5) != "HTTP/") return bad(400);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return bad(505);
  if (method != "GET" && method != "HEAD") return bad(405);
  if (announces_body(headers)) return bad(413);
  return {State::kGood, 0, method == "HEAD", std::string(target.substr(0, target.find('?')))};
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Unknown";
  }
}

}  // namespace fettle::op
