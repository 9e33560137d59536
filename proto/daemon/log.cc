#include "daemon/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace muster {
namespace {

// Separates an event's parts on their way through spdlog. It is replaced in a value that holds it,
// since control characters do not belong into a log.
constexpr char kSeparator = '\x1f';

std::string Json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Writes it bare if that cannot be misread.
std::string Text(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_of(" \"=\\\n\t\r") == std::string_view::npos;
  return plain ? std::string(text) : Json(text);
}

std::vector<std::string_view> Split(std::string_view payload) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = payload.find(kSeparator);
    parts.push_back(payload.substr(0, end));
    if (end == std::string_view::npos) return parts;
    payload.remove_prefix(end + 1);
  }
}

std::string_view Level(spdlog::level::level_enum level, bool upper) {
  switch (level) {
    case spdlog::level::trace:
      return upper ? "TRACE" : "trace";
    case spdlog::level::debug:
      return upper ? "DEBUG" : "debug";
    case spdlog::level::info:
      return upper ? "INFO" : "info";
    case spdlog::level::warn:
      return upper ? "WARN" : "warn";
    case spdlog::level::err:
      return upper ? "ERROR" : "error";
    default:
      return upper ? "FATAL" : "fatal";
  }
}

}  // namespace

void LogEvent(spdlog::level::level_enum level, std::string_view event, LogFields fields) {
  if (!spdlog::should_log(level)) return;
  std::string payload(event);
  for (const auto& [key, value] : fields) {
    payload += kSeparator;
    payload += key;
    payload += kSeparator;
    for (const char c : value) payload += c == kSeparator ? ' ' : c;
  }
  spdlog::log(level, "{}", payload);
}

void EventFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) {
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone());
  const auto parts = Split(std::string_view(message.payload.data(), message.payload.size()));
  std::string line;
  if (json_) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":{})", time,
                       Level(message.level, false), Json(parts[0]));
    for (size_t i = 1; i + 1 < parts.size(); i += 2) {
      line += fmt::format(",{}:{}", Json(parts[i]), Json(parts[i + 1]));
    }
    line += "}\n";
  } else {
    line = fmt::format("{} {} {}", time, Level(message.level, true), parts[0]);
    for (size_t i = 1; i + 1 < parts.size(); i += 2) {
      line += fmt::format(" {}={}", parts[i], Text(parts[i + 1]));
    }
    line += '\n';
  }
  out.append(line.data(), line.data() + line.size());
}

std::unique_ptr<spdlog::formatter> EventFormatter::clone() const {
  return std::make_unique<EventFormatter>(json_);
}

void StartLogging(const std::string& program, bool json, const std::string& level) {
  auto logger = spdlog::stderr_logger_mt(program);
  logger->set_formatter(std::make_unique<EventFormatter>(json));
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster
