// FakeLog: a container's log in a FakeApiServer, and the kubelet's answer to a request for it. Not
// synchronised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kube/client/http.h"
#include "kube/testing/fake_target.h"

namespace fettle::kube {

struct FakeLog {
  struct Line {
    std::int64_t at_ns = 0;
    std::string text;
  };

  // `at_ns` 0 = now.
  void append(const std::string& text, std::int64_t at_ns);
  // Like the kubelet: sinceTime counts whole seconds, and limitBytes cuts lines in two.
  HttpResponse window(const FakeTarget& target) const;

  std::vector<Line> lines;
  bool ended = false;
};

}  // namespace fettle::kube
