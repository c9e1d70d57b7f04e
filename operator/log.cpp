// spdlog supplies time, level and an unbroken line; the line's text is formatted here.
#include "operator/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/json.h"
#include "base/utf8.h"

namespace fettle::op {

namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

std::string quoted(std::string_view text) { return Json(utf8_excerpt(text, kMaxLogValue)).dump(); }

}  // namespace

std::string log_text(LogFormat format, std::string_view message, const LogFields& fields) {
  const bool json = format == LogFormat::kJson;
  std::string text = json ? "\"message\":" + quoted(message) : std::string(message);
  for (const auto& [key, value] : fields) {
    text += json ? "," + quoted(key) + ":" : " " + std::string(key) + "=";
    text += quoted(value);
  }
  return text;
}

Log::Log(LogFormat format, LogLevel least)
    : format_(format),
      least_(least),
      logger_(std::make_shared<spdlog::logger>("fettle",
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  logger_->set_level(level_of(least));
  // %v is log_text(): in JSON, members without braces.
  const char* pattern = format == LogFormat::kJson
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                            : "%Y-%m-%dT%H:%M:%S.%eZ %l %v";
  logger_->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
}

void Log::write(LogLevel level, std::string_view message, const LogFields& fields) {
  if (level < least_) return;
  logger_->log(level_of(level), log_text(format_, message, fields));
}

}  // namespace fettle::op
