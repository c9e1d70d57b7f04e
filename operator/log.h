// Log: lines for people or for machines, on standard error. A message is constant, so that it can
// be searched for; variable parts follow as keys and values. Thread-safe.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): its name there
}  // namespace spdlog

namespace fettle::op {

enum class LogFormat { kText, kJson };
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Longer values are truncated.
inline constexpr std::size_t kMaxLogValue = 2'048;

using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// `message` with its fields, as one line without time and level: `message key="value"`, or for
// machines the members of a JSON object. Pure.
std::string log_text(LogFormat format, std::string_view message, const LogFields& fields);

class Log {
 public:
  Log(LogFormat format, LogLevel least);

  void debug(std::string_view message, LogFields fields = {}) {
    write(LogLevel::kDebug, message, fields);
  }
  void info(std::string_view message, LogFields fields = {}) {
    write(LogLevel::kInfo, message, fields);
  }
  void warning(std::string_view message, LogFields fields = {}) {
    write(LogLevel::kWarning, message, fields);
  }
  void error(std::string_view message, LogFields fields = {}) {
    write(LogLevel::kError, message, fields);
  }

 private:
  void write(LogLevel level, std::string_view message, const LogFields& fields);

  const LogFormat format_;
  const LogLevel least_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace fettle::op
