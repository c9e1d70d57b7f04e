#include "kube/client/api_status.h"

#include <string_view>

#include "base/utf8.h"
#include "kube/objects/json_path.h"

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxExcerpt = 160;

// Appends "spec.template: Required value" for each cause that the message does not mention.
std::string with_causes(std::string message, const Json& status) {
  for (const Json& cause : array_at(status, {"details", "causes"})) {
    const std::string told = text_at(cause, {"message"});
    if (told.empty() || message.find(told) != std::string::npos) continue;
    const std::string field = text_at(cause, {"field"});
    message += message.empty() ? "" : "; ";
    message += field.empty() ? told : field + ": " + told;
  }
  return message;
}

bool has_cause(const Json& status, std::string_view reason) {
  for (const Json& cause : array_at(status, {"details", "causes"})) {
    if (text_at(cause, {"reason"}) == reason) return true;
  }
  return false;
}

// A namespace that is being deleted refuses new objects for as long as the deletion takes.
bool is_terminating(int code, const Json& status) {
  return code == 403 && has_cause(status, "NamespaceTerminating");
}

ErrorCode error_code(int code, const std::string& reason) {
  switch (code) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kForbidden;
    case 404:
    case 410:
      return ErrorCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    default:  // 429, 5xx, and any other code
      return ErrorCode::kUnavailable;
  }
}

// Returns the text of a page without its tags, on one line. A tag counts as a space between two
// words.
std::string visible_text(std::string_view body) {
  std::string out;
  bool in_tag = false;
  for (const char c : body) {
    if (out.size() >= kMaxExcerpt) break;
    if (c == '<') {
      in_tag = true;
    } else if (c == '>') {
      in_tag = false;
    }
    const bool blank = in_tag || c == '>' || static_cast<unsigned char>(c) <= ' ';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return utf8_excerpt(out, kMaxExcerpt);
}

}  // namespace

std::optional<ApiStatus> read_status(const Json& object) {
  if (text_at(object, {"kind"}) != "Status") return std::nullopt;
  ApiStatus out;
  out.code = static_cast<int>(integer_at(object, {"code"}));
  out.reason = text_at(object, {"reason"});
  out.message = with_causes(text_at(object, {"message"}), object);
  out.terminating = is_terminating(out.code, object);
  out.list_again = out.code == 410 || out.reason == "Expired" || out.reason == "Gone" ||
                   has_cause(object, "ResourceVersionTooLarge");
  return out;
}

std::optional<ApiStatus> read_status(const HttpResponse& response) {
  const Result<Json> body = parse_json(response.body);
  std::optional<ApiStatus> out = body.ok() ? read_status(*body) : std::nullopt;
  if (out && out->code == 0) out->code = response.status;
  return out;
}

std::string describe_body(const HttpResponse& response) {
  const std::string code = "HTTP " + std::to_string(response.status);
  const bool html = response.body.find('<') != std::string::npos;
  const std::string text = visible_text(response.body);
  if (text.empty()) return code + " without a message";
  return code + (html ? " with a page of HTML: " : ": ") + text;
}

Error read_error(const HttpResponse& response, const std::string& what) {
  const std::optional<ApiStatus> status = read_status(response);
  if (status) {
    const std::string said = status->message.empty() ? status->reason : status->message;
    const ErrorCode code =
        status->terminating ? ErrorCode::kUnavailable : error_code(response.status, status->reason);
    return {code, what + ": " + (said.empty() ? "HTTP " + std::to_string(response.status) : said)};
  }
  // No Status: a proxy answered, or the server is not up yet. Such a refusal says nothing about the
  // object. These three count all the same: a missing path or right does not appear by waiting.
  const bool believed = response.status == 404 || response.status == 401 || response.status == 403;
  return {believed ? error_code(response.status, "") : ErrorCode::kUnavailable,
          what + ": the API server, or something before it, answered " + describe_body(response)};
}

}  // namespace fettle::kube
