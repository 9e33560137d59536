#include "clients/cpp/unquoted.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace muster::client {
namespace {

constexpr char kQuoted = '_';
// At most this many here-documents are looked for, because each search may read the rest of the
// script. People write a few; beyond it "<<" begins none.
constexpr int kMaxDocuments = 100;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string Take() {
    while (at_ < text_.size()) {
      if (!open_.empty() && open_.back() == '"') {
        StepInQuotes();
      } else {
        Step();
      }
    }
    return std::move(out_);
  }

 private:
  char Next(size_t ahead = 1) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void StepInQuotes() {
    const char c = text_[at_];
    if (c == '"') open_.pop_back();
    if (c == '$' && Next() == '(') {
      open_.push_back('(');
      out_ += '(';
      ++at_;
    }
    at_ += c == '\\' ? 2 : 1;
  }

  void Step() {
    const char c = text_[at_];
    switch (c) {
      case '\\':
        // A line that goes on has nothing in place of its end.
        if (Next() != '\n') out_ += kQuoted;
        at_ += 2;
        return;
      case '\'':
        out_ += kQuoted;
        at_ = std::min(text_.find('\'', at_ + 1), text_.size() - 1) + 1;
        return;
      case '"':
        out_ += kQuoted;
        open_.push_back(c);
        ++at_;
        return;
      case '#':
        if (!IsInsideWord()) {
          at_ = std::min(text_.find('\n', at_), text_.size());
          return;
        }
        break;
      case '(':
        open_.push_back(c);
        break;
      case ')':
        if (!open_.empty()) open_.pop_back();
        break;
      case '<':
        if (Next() == '<') return StartDocument();
        break;
      case '\n':
        return EndLine();
      default:
        break;
    }
    out_ += c;
    ++at_;
  }

  bool IsInsideWord() const {
    return !out_.empty() && std::string_view(" \t\n;&|()").find(out_.back()) == std::string::npos;
  }

  // After "<<END" or "<<-'END'" the document begins with the next line. "<<<" begins none.
  void StartDocument() {
    out_ += "<<";
    at_ += 2;
    if (at_ < text_.size() && text_[at_] == '<') {
      while (at_ < text_.size() && text_[at_] == '<') ++at_;
      return;
    }
    at_ = std::min(text_.find_first_not_of("- \t\\", at_), text_.size());
    const bool is_quoted = at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
    const size_t begin = at_ + (is_quoted ? 1 : 0);
    at_ = std::min(
        is_quoted ? text_.find(text_[at_], begin) : text_.find_first_of(" \t\n;&|()<>'\"`", begin),
        text_.size());
    if (at_ > begin && ++seen_documents_ <= kMaxDocuments)
      documents_.push_back(text_.substr(begin, at_ - begin));
    if (is_quoted && at_ < text_.size()) ++at_;
  }

  // Leaves out the documents that begin here.
  void EndLine() {
    out_ += '\n';
    ++at_;
    for (const std::string_view last_line : documents_) at_ = EndOfDocument(last_line);
    documents_.clear();
  }

  // Returns where we are if nothing ends with that line: "<<" was no document, as in $((a<<b)).
  size_t EndOfDocument(std::string_view last_line) const {
    for (size_t at = at_; at < text_.size();) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      std::string_view line = text_.substr(at, end - at);
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      at = std::min(end + 1, text_.size());
      if (line == last_line) return at;
    }
    return at_;
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  std::vector<char> open_;                   // '"' and '(' that are not closed yet
  std::vector<std::string_view> documents_;  // the last lines of those that this line begins
  int seen_documents_ = 0;
};

}  // namespace

std::string Unquoted(std::string_view script) { return Scanner(script).Take(); }

}  // namespace muster::client
