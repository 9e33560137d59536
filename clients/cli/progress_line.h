// The progress of a transfer, in one line of a terminal.
#ifndef MUSTER_CLIENTS_CLI_PROGRESS_LINE_H_
#define MUSTER_CLIENTS_CLI_PROGRESS_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "clients/cli/terminal.h"

namespace muster::cli {

// "uploading 3 files of 1GiB: 45%, 120MiB/s, 5s left"; without the rest and its time where `all` is
// 0, which is not known.
std::string ProgressText(std::string_view what, uint64_t done, uint64_t all,
                         absl::Duration elapsed);

// Shows the text on standard error if that is a terminal, in place of the last one. Belongs to one
// thread.
class ProgressLine {
 public:
  ProgressLine(Terminal* terminal, std::string what);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(uint64_t done, uint64_t all);
  // Takes it away, before other text is written.
  void Clear();

 private:
  Terminal& terminal_;
  const std::string what_;
  const absl::Time begin_;
  absl::Time last_;
  bool is_shown_ = false;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PROGRESS_LINE_H_
