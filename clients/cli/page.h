// Builds pages.
#ifndef MUSTER_CLIENTS_CLI_PAGE_H_
#define MUSTER_CLIENTS_CLI_PAGE_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "clients/cli/table.h"
#include "clients/cli/text.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::cli {

// Lines "Label      value". Values that are empty are left out.
class Page {
 public:
  explicit Page(bool colours) : colours_(colours) {}

  void Heading(std::string_view text) {
    if (!out_.empty()) out_ += '\n';
    out_ += text;
    out_ += '\n';
  }
  void Line(std::string_view label, std::string_view value, Colour colour = Colour::kNone) {
    if (value.empty() || value == "-") return;
    out_ += fmt::format("  {:<11} {}\n", label, Paint(value, colour, colours_));
  }
  // The content follows in lines of its own.
  void Label(std::string_view label) { out_ += fmt::format("  {}\n", label); }
  void Time(std::string_view label, const google::protobuf::Timestamp& time, absl::Time now) {
    if (time.seconds() == 0) return;
    Line(label, fmt::format("{} ({})", Rfc3339(time), Ago(time, now)));
  }
  void Raw(std::string_view text) { out_ += text; }
  std::string Take() { return std::move(out_); }

 private:
  const bool colours_;
  std::string out_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_PAGE_H_
