// Text from elsewhere made fit for a terminal, its width there, and times for people.
#ifndef MUSTER_CLIENTS_CLI_TEXT_H_
#define MUSTER_CLIENTS_CLI_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::cli {

// Makes visible what would act on a terminal: C0 and C1 controls and DEL, so escape sequences of
// every kind, the marks that reorder a line's characters, and bytes that are not UTF-8. \x1b is
// written "\x1b", U+202E "\u202e".
enum class Keep {
  kNothing,  // for names and reasons: line ends too become visible
  kLayout,   // for logs: \n, \t and \r stay, so that lines and progress bars look as meant
};
std::string Harmless(std::string_view text, Keep keep = Keep::kNothing);

// Harmless for bytes that come in pieces: a character that is cut in two is put together again.
class HarmlessStream {
 public:
  std::string Next(std::string_view piece);
  // Returns the rest at the end.
  std::string Finish();

 private:
  std::string cut_;  // the beginning of a character, up to three bytes
};

// The same for a text of several lines, made one: line ends with the blanks around them become " |
// ", those at its ends nothing.
std::string OneLine(std::string_view text);

// Columns on a terminal of a text that is harmless.
size_t Width(std::string_view text);
// The text; or if it is wider, those of its first words that fit whole, and "…": names and
// addresses stay as they are. The first word is there in any case, and cut only after
// kMaxWordWidth.
inline constexpr size_t kMaxWordWidth = 256;  // as wide as a table may be for a name's sake
std::string CutToWords(std::string_view text, size_t max_width);

// The text; or if it is wider, the characters that fit, and "…".
std::string CutToWidth(std::string_view text, size_t max_width);

absl::Time ToTime(const google::protobuf::Timestamp& timestamp);
absl::Duration ToDuration(const google::protobuf::Duration& span);
// "2026-03-01T12:00:00Z", to the second; "-" if absent.
std::string Rfc3339(const google::protobuf::Timestamp& timestamp);
// "3m ago", "in 5s", "now"; "-" if absent.
std::string Ago(const google::protobuf::Timestamp& timestamp, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_TEXT_H_
