#include "kube/transport/transport.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/line_buffer.h"

namespace fettle::kube {
namespace {

std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(static_cast<double>(time.count()) / 1000.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

HttpResult Transport::call(const HttpRequest& request, std::chrono::milliseconds deadline) {
  const TimePoint end = std::chrono::steady_clock::now() + deadline;
  return authorised(
      [&](const Credential& credential) { return call_once(request, credential, deadline, end); });
}

HttpResult Transport::stream(const HttpRequest& request,
                             const std::function<bool(std::string_view line)>& on_line,
                             std::chrono::milliseconds idle, std::stop_token stop) {
  return authorised([&](const Credential& credential) {
    return stream_once(request, credential, on_line, idle, stop);
  });
}

HttpResult Transport::authorised(const std::function<HttpResult(const Credential&)>& send) {
  const TimePoint start = std::chrono::steady_clock::now();
  const Result<Credential> credential = tokens_->current();
  if (!credential.ok()) return HttpFailure{/*maybe_done=*/false, credential.error().message};
  HttpResult result = send(*credential);
  const auto* const response = std::get_if<HttpResponse>(&result);
  if (response == nullptr || response->status != 401) return result;
  tokens_->reject(start);  // unless it was already replaced since
  const Result<Credential> newer = tokens_->current();
  if (!newer.ok() || *newer == *credential) return result;
  return send(*newer);
}

HttpResult Transport::call_once(const HttpRequest& request, const Credential& credential,
                                std::chrono::milliseconds deadline, TimePoint end) {
  // `end` holds for both tries of authorised(); `deadline` is for the message.
  std::string body;
  bool too_large = false;
  Waiting waiting;
  waiting.until = [end] { return end; };
  waiting.timeout_text = "no whole answer within " + seconds_text(deadline);
  waiting.on_block = [&](int, std::string_view block) {
    too_large = body.size() + block.size() > kMaxBody;
    if (!too_large) body += block;
    return !too_large;
  };
  HttpResult result = wire_->exchange(Wire::Purpose::kCall, request, credential, waiting);
  if (too_large) {
    return HttpFailure{/*maybe_done=*/true, server_ + ": the answer is larger than " +
                                                std::to_string(kMaxBody) + " bytes"};
  }
  if (auto* const response = std::get_if<HttpResponse>(&result)) response->body = std::move(body);
  return result;
}

HttpResult Transport::stream_once(const HttpRequest& request, const Credential& credential,
                                  const std::function<bool(std::string_view line)>& on_line,
                                  std::chrono::milliseconds idle, const std::stop_token& stop) {
  LineBuffer lines(kMaxLine);
  bool wants_more = true;
  std::string refusal;
  Waiting waiting;
  waiting.until = [idle] { return std::chrono::steady_clock::now() + idle; };
  waiting.timeout_text = "nothing came for " + seconds_text(idle);
  waiting.stop = stop;
  waiting.on_block = [&](int status, std::string_view block) {
    if (status != 200) {
      // The body of a refusal, cut at kMaxLine.
      refusal += block.substr(0, kMaxLine - std::min(kMaxLine, refusal.size()));
      return refusal.size() < kMaxLine;
    }
    lines.add(block);
    while (wants_more) {
      const std::optional<std::string_view> line = lines.take();
      if (!line) return !lines.is_too_long();
      wants_more = on_line(*line);
    }
    return false;  // on_line ended it
  };
  HttpResult result = wire_->exchange(Wire::Purpose::kStream, request, credential, waiting);
  auto* const response = std::get_if<HttpResponse>(&result);
  if (response == nullptr) return result;
  if (wants_more && lines.is_too_long()) {
    return HttpFailure{/*maybe_done=*/true, server_ + ": a line of the answer is longer than " +
                                                std::to_string(kMaxLine) + " bytes"};
  }
  // After a normal end of the stream, the rest is the last line.
  if (wants_more && !stop.stop_requested() && !lines.rest().empty()) on_line(lines.rest());
  response->body = std::move(refusal);
  return result;
}

}  // namespace fettle::kube
