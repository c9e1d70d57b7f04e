// SuggestSession: the requests of the suggest protocol (suggest.h) and their replies.
// Not synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"
#include "cli/suggest/suggest.h"
#include "cli/suggest/suggest_line.h"
#include "cli/suggest/suggest_search.h"

namespace fettle::cli {

class SuggestSession {
 public:
  // `place`: where the study is kept; absent: it ends with the session.
  explicit SuggestSession(std::optional<SuggestPlace> place) : place_(std::move(place)) {}

  // Returns the members of the reply, `"trials":[...]`; "" = no reply.
  Result<std::string> handle(const SuggestLine& line);

 private:
  Result<std::string> start(const Json& content, bool ack);
  Result<std::string> ask(const Json& content);
  Result<std::string> tell(const Json& content, bool ack);
  Result<std::string> report(const Json& content);
  Result<std::string> best(const Json& content) const;
  Result<std::string> add_first(const Json& content, bool ack);
  Result<std::string> add_known(const Json& content, bool ack);

  const std::optional<SuggestPlace> place_;
  std::unique_ptr<SuggestSearch> search_;  // null before the study
};

}  // namespace fettle::cli
