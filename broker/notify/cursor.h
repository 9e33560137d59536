// Keeps how far a webhook is in the feed of changes, in a small file of its own:
//
//   after: 1234
//   time: 2026-01-31T12:00:00Z
//
// The file has what the receiver has taken, or what it was not to hear of. It is replaced as a
// whole. An operator may write another number while the broker does not run: docs/notifications.md.
#ifndef MUSTER_BROKER_NOTIFY_CURSOR_H_
#define MUSTER_BROKER_NOTIFY_CURSOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::notify {

struct Cursor {
  uint64_t after = 0;  // the sequence of the last change that is done with
  std::optional<absl::Time> time =
      {};  // when it was recorded or found to be the last; nothing: not known

  friend bool operator==(const Cursor&, const Cursor&) = default;
};

std::string ToText(const Cursor& cursor);
// INVALID_ARGUMENT says which form is right.
absl::StatusOr<Cursor> ParseCursor(std::string_view text);

// Nothing: there is no file. An error names it.
absl::StatusOr<std::optional<Cursor>> ReadCursor(const std::string& path);
// An OK means that it is on disk.
absl::Status WriteCursor(const std::string& path, const Cursor& cursor);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_CURSOR_H_
