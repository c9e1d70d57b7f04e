// SuggestSession: the requests of the suggest protocol (suggest.h) and their replies.
// Not synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cli/suggest/suggest_line.h"
#include "cli/suggest/suggest_search.h"

namespace fettle::cli {

class SuggestSession {
 public:
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

  std::unique_ptr<SuggestSearch> search_;  // null before the study
};

}  // namespace fettle::cli
