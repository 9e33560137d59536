#include "clients/cpp/skypilot/tabs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cpp/yaml_reader.h"

namespace muster::client::skypilot {
namespace {

constexpr std::string_view kBlanks = " \t";

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return lines;
}

// Follows the parser, and looks at the lines between one value and the next.
class TabWatcher final : public YAML::EventHandler {
 public:
  TabWatcher(std::string_view file, const std::vector<std::string_view>& lines,
             std::vector<std::string>* problems)
      : file_(file), lines_(lines), problems_(*problems) {}

  // Looks at the lines after the last value.
  void Finish() { LookBetween(lines_.size()); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Begins(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    Begins(mark);
    SkipText(mark, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value style) override {
    Open(mark, style);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value style) override {
    Open(mark, style);
  }
  void OnMapEnd() override { Close(); }

 private:
  // Tells whether the place is in brackets, in which a tab is a blank like others.
  bool IsInFlow() const { return !open_flows_.empty() && open_flows_.back(); }

  void Open(const YAML::Mark& mark, YAML::EmitterStyle::value style) {
    Begins(mark);
    open_flows_.push_back(IsInFlow() || style == YAML::EmitterStyle::Flow);
  }

  // Ends a bracket: no text goes on behind it.
  void Close() {
    if (IsInFlow()) is_after_plain_ = false;
    open_flows_.pop_back();
  }

  // A value, or a name, begins here.
  void Begins(const YAML::Mark& mark) {
    const auto line = static_cast<size_t>(std::max(mark.line, 0));
    if (line >= lines_.size()) return;
    LookBetween(line);
    is_after_plain_ = false;
    next_ = std::max(next_, line);
    if (IsInFlow()) return;
    // This is the text before it on its line: an indentation, or one that a dash, a question mark
    // or the colon of a name that is on a line of its own extends.
    const std::string_view before =
        lines_[line].substr(0, static_cast<size_t>(std::max(mark.column, 0)));
    const size_t last = before.find_last_not_of(kBlanks);
    const bool is_lone_colon =
        last != before.npos && before[last] == ':' && before.find_first_not_of(kBlanks) == last;
    const bool is_indent =
        last == before.npos || before[last] == '-' || before[last] == '?' || is_lone_colon;
    const size_t tab = before.find('\t', last == before.npos ? 0 : last);
    if (is_indent && tab != before.npos) Problem(line, tab);
  }

  // Looks at lines that have neither a value nor a text, up to this one: comments, and dashes whose
  // item is on another line.
  void LookBetween(size_t end) {
    for (; next_ < std::min(end, lines_.size()); ++next_) {
      const std::string_view line = lines_[next_];
      const size_t first = line.find_first_not_of(" \t-");
      const bool is_empty = first == line.npos || line[first] == '#' || line[first] == '\r';
      const bool is_of_plain = is_after_plain_ && line.find('-') > line.find('\t');
      if (is_empty && !is_of_plain && !IsInFlow() && !line.starts_with("---") &&
          line.substr(0, first).find('\t') != line.npos) {
        Problem(next_, line.find('\t'));
      }
    }
  }

  // Tabs inside of a text are its own. A plain one may go on after a line of blanks, so that
  // libyaml takes such a line for a part of it.
  void SkipText(const YAML::Mark& mark, std::string_view value) {
    const auto line = static_cast<size_t>(std::max(mark.line, 0));
    if (line >= lines_.size()) return;
    const size_t column = BehindProperties(lines_[line], static_cast<size_t>(mark.column));
    const std::string_view rest = lines_[line].substr(column);
    if (rest.starts_with('|') || rest.starts_with('>')) {
      const std::string_view header = rest.substr(0, rest.find_first_of(" \t\r#"));
      SkipBlock(line + 1, header.find_first_of("123456789") != header.npos);
    } else if (rest.starts_with('"') || rest.starts_with('\'')) {
      SkipQuoted(line, column);
    } else {
      std::string_view behind = rest.substr(std::min(rest.size(), value.size()));
      behind.remove_prefix(std::min(behind.find_first_not_of(kBlanks), behind.size()));
      is_after_plain_ = !behind.starts_with(':');
    }
  }

  // Returns the column behind "&anchor" and "!tag".
  static size_t BehindProperties(std::string_view line, size_t column) {
    column = std::min(column, line.size());
    while (column < line.size() && (line[column] == '&' || line[column] == '!')) {
      column = std::min(line.find_first_of(kBlanks, column), line.size());
      column = std::min(line.find_first_not_of(kBlanks, column), line.size());
    }
    return column;
  }

  // Skips the text under | or >: lines that are indented as its first one is, and empty ones. With
  // a number (|2) the first one may have blanks of its own before it.
  void SkipBlock(size_t line, bool has_number) {
    while (line < lines_.size() && lines_[line].find_first_not_of(" \r") == std::string_view::npos)
      ++line;
    if (line >= lines_.size()) return;
    const size_t indent = has_number ? 1 : lines_[line].find_first_not_of(' ');
    if (!has_number && lines_[line][indent] == '\t') Problem(line, indent);
    for (; line < lines_.size(); ++line) {
      const size_t first = lines_[line].find_first_not_of(' ');
      if (first < indent && lines_[line][first] != '\r') break;
    }
    next_ = std::max(next_, line);
  }

  void SkipQuoted(size_t line, size_t column) {
    const char quote = lines_[line][column];
    for (size_t at = column + 1; line < lines_.size(); ++line, at = 0) {
      const std::string_view text = lines_[line];
      for (; at < text.size(); ++at) {
        const bool is_escape = quote == '"' && text[at] == '\\';
        const bool is_doubled = quote == '\'' && text.substr(at).starts_with("''");
        if (is_escape || is_doubled) {
          ++at;
        } else if (text[at] == quote) {
          next_ = std::max(next_, line + 1);
          return;
        }
      }
    }
  }

  void Problem(size_t line, size_t column) {
    if (problems_.size() >= kMaxYamlProblems) return;
    problems_.push_back(fmt::format("{}:{}:{}: the line is indented with a tab, YAML wants blanks",
                                    file_, line + 1, column + 1));
  }

  const std::string file_;
  const std::vector<std::string_view>& lines_;
  std::vector<std::string>& problems_;
  std::vector<bool> open_flows_;  // of each collection that is open: whether it is in brackets
  size_t next_ = 0;               // the first line that nobody has looked at
  bool is_after_plain_ = false;   // since then a value without quotes, which is no name
};

}  // namespace

absl::Status CheckTabs(std::string_view file, std::string_view text) {
  if (text.find('\t') == text.npos) return absl::OkStatus();
  const std::vector<std::string_view> lines = LinesOf(text);
  std::vector<std::string> problems;
  std::istringstream stream{std::string(text)};
  TabWatcher watcher(file, lines, &problems);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(watcher)) {
    }
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{}:{}:{}: not valid YAML: {}", file,
                                                  error.mark.line + 1, error.mark.column + 1,
                                                  error.msg));
  }
  watcher.Finish();
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(problems, "\n")));
}

}  // namespace muster::client::skypilot
