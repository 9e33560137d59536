#include "broker/notify/cursor.h"

#include <fmt/format.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "contract/characters.h"
#include "contract/text.h"
#include "daemon/read_file.h"
#include "daemon/write_file.h"

namespace muster::notify {
namespace {

// Two short lines, and room for an operator's comments.
constexpr size_t kMaxCursorBytes = 4096;
constexpr mode_t kCursorMode = 0600;

absl::Status BadLine(absl::string_view line) {
  return absl::InvalidArgumentError(
      ToAbsl(fmt::format("the line {} is neither `after: NUMBER` nor `time: 2026-01-31T12:00:00Z`",
                         contract::Quoted(ToStd(line)))));
}

}  // namespace

std::string ToText(const Cursor& cursor) {
  std::string text = fmt::format("after: {}\n", cursor.after);
  if (cursor.time) {
    text += fmt::format("time: {}\n",
                        absl::FormatTime(absl::RFC3339_full, *cursor.time, absl::UTCTimeZone()));
  }
  return text;
}

absl::StatusOr<Cursor> ParseCursor(std::string_view text) {
  std::optional<uint64_t> after;
  Cursor cursor;
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n', absl::SkipWhitespace())) {
    const absl::string_view whole = line;
    uint64_t number = 0;
    absl::Time time;
    if (absl::ConsumePrefix(&line, "after:")) {
      if (!absl::SimpleAtoi(line, &number)) return BadLine(whole);
      after = number;
    } else if (absl::ConsumePrefix(&line, "time:")) {
      if (!absl::ParseTime(absl::RFC3339_full, line, &time, nullptr)) return BadLine(whole);
      cursor.time = time;
    } else {
      return BadLine(whole);
    }
  }
  if (!after) return absl::InvalidArgumentError("it has no line `after: NUMBER`");
  cursor.after = *after;
  return cursor;
}

absl::StatusOr<std::optional<Cursor>> ReadCursor(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxCursorBytes);
  if (absl::IsNotFound(text.status())) return std::optional<Cursor>();
  if (!text.ok()) return text.status();
  const absl::StatusOr<Cursor> cursor = ParseCursor(*text);
  if (cursor.ok()) return std::optional<Cursor>(*cursor);
  return absl::InvalidArgumentError(ToAbsl(fmt::format(
      "{}: {}; mend it, or remove the file: then the webhook begins with what comes next", path,
      ToStd(cursor.status().message()))));
}

absl::Status WriteCursor(const std::string& path, const Cursor& cursor) {
  return WriteFileWhole(path, ToText(cursor), kCursorMode);
}

}  // namespace muster::notify
