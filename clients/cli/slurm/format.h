// Columns as users of squeue and sinfo ask for them: "%.18i %9P %t".
#ifndef MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_
#define MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

// One column.
struct FormatField {
  char letter = 0;
  size_t width = 0;   // 0: as wide as the text; a longer text is cut
  bool fits = false;  // as wide as its widest text
  bool right = false;
  std::string before;  // the text between it and the column before
};

struct ColumnFormat {
  std::vector<FormatField> fields;
  std::string after;

  bool Has(char letter) const;
  // A line for each row, whose values are in the order of the fields. Blanks at a line's end go.
  std::string Lines(const std::vector<std::vector<std::string>>& rows) const;
};

// "%[.][WIDTH]LETTER", "%#LETTER" (as wide as it needs) and text between. INVALID_ARGUMENT: a
// letter that is not one of `letters`; the message names it.
absl::StatusOr<ColumnFormat> ParseColumnFormat(std::string_view text, std::string_view letters);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_
