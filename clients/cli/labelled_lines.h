// Lines of several logs on one output, each with whose it is before it.
#ifndef MUSTER_CLIENTS_CLI_LABELLED_LINES_H_
#define MUSTER_CLIENTS_CLI_LABELLED_LINES_H_

#include <string>
#include <string_view>

namespace muster::cli {

// Belongs to one thread. With an empty label nothing is held back, and Next is not for it.
class LabelledLines {
 public:
  explicit LabelledLines(std::string_view label) : label_(label) {}

  // The lines that the piece completes, each with the label; what is left waits for its end, up to
  // kMaxHeldBytes.
  std::string Next(std::string_view piece);
  // Returns the rest, as a line.
  std::string Finish();

 private:
  const std::string label_;
  std::string held_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_LABELLED_LINES_H_
