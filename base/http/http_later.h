// HttpLater: the answer to a request that another thread is still working on. The handler returns
// it, and the server waits for it without a thread of its own.
//
// Thread-safe. Whoever makes one must call answer() in the end, or its connection stays open until
// the server stops.
#pragma once

#include <memory>
#include <mutex>

struct MHD_Connection;

namespace fettle {

struct HttpAnswer;

class HttpLater {
 public:
  HttpLater();
  ~HttpLater();

  // The first answer counts. Does nothing once the server has stopped.
  void answer(HttpAnswer answer);

 private:
  friend class HttpServer;

  // Suspends the connection, unless the answer is there already.
  void wait(MHD_Connection* connection);
  // nullptr: the connection was given up before.
  std::unique_ptr<HttpAnswer> take();
  void give_up();
  void wake();

  std::mutex mutex_;
  std::unique_ptr<HttpAnswer> answer_;
  bool is_over_ = false;
  MHD_Connection* suspended_ = nullptr;
};

}  // namespace fettle
