// Columns as users of squeue and sinfo ask for them: "%.18i %9P %t", "JobID:18,Name".
#ifndef MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_
#define MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

// Describes one column.
struct FormatField {
  char letter = 0;
  size_t width = 0;   // 0: as wide as the text; a longer text is cut
  bool fits = false;  // as wide as its widest text
  bool right = false;
  bool is_whole = false;  // a longer text is not cut
  std::string before;     // the text between it and the column before
};

struct ColumnFormat {
  std::vector<FormatField> fields;
  std::string after;

  bool Has(char letter) const;
  // A line for each row, whose values are in the order of the fields. Blanks at a line's end go. If
  // there is a heading, it is the first row.
  std::string Lines(const std::vector<std::vector<std::string>>& rows, bool has_heading) const;
};

// "%[.][WIDTH]LETTER", "%#LETTER" (as wide as it needs), "%all" and text between. A letter that is
// not one of `letters` stays as text, and is added to `unknown`, as Slurm's programs have it. A
// column of `whole` is never cut.
ColumnFormat ParseColumnFormat(std::string_view text, std::string_view letters,
                               std::string_view whole, std::vector<std::string>* unknown);

// Names of columns, and their letters.
using LongNames = std::span<const std::pair<std::string_view, char>>;
// "JobID:18,Name:.8,State:|": the columns of --Format, in any case. A name that is not one of
// `names` is left out, and is added to `unknown`.
ColumnFormat ParseLongFormat(std::string_view text, LongNames names,
                             std::vector<std::string>* unknown);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SLURM_FORMAT_H_
