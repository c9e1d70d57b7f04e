#include "base/http/http_later.h"

#include <microhttpd.h>

#include <utility>

#include "base/http/http_server.h"

namespace fettle {

HttpLater::HttpLater() = default;
HttpLater::~HttpLater() = default;

void HttpLater::answer(HttpAnswer answer) {
  const std::lock_guard lock(mutex_);
  if (is_over_ || answer_ != nullptr) return;
  answer_ = std::make_unique<HttpAnswer>(std::move(answer));
  wake();
}

void HttpLater::wait(MHD_Connection* connection) {
  const std::lock_guard lock(mutex_);
  if (answer_ != nullptr || is_over_) return;
  suspended_ = connection;
  MHD_suspend_connection(connection);
}

std::unique_ptr<HttpAnswer> HttpLater::take() {
  const std::lock_guard lock(mutex_);
  is_over_ = true;
  return std::move(answer_);
}

void HttpLater::give_up() {
  const std::lock_guard lock(mutex_);
  if (answer_ == nullptr) is_over_ = true;
  wake();
}

void HttpLater::wake() {
  if (suspended_ != nullptr) MHD_resume_connection(suspended_);
  suspended_ = nullptr;
}

}  // namespace fettle
