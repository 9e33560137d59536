#include "contract/first_command.h"

#include <algorithm>
#include <cstddef>

#include "contract/task_script.h"

namespace muster::contract {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kQuotes = "\"'";
constexpr std::string_view kArrows = "<>";

// A command may follow them.
constexpr std::string_view kBefore[] = {"if", "elif", "else", "then", "while", "until",
                                        "do", "!",    "{",    "(",    "time",  "exec"};
// No command follows them before the statement ends.
constexpr std::string_view kAlone[] = {"for",  "case", "select", "function", "done", "fi",
                                       "esac", "}",    ")",      "[",        "[[",   "(("};

template <size_t kSize>
bool IsOneOf(const std::string_view (&words)[kSize], std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Takes the text up to one of the ends, and that end with it.
std::string_view TakeUntil(std::string_view ends, std::string_view* text) {
  const std::string_view taken = text->substr(0, text->find_first_of(ends));
  text->remove_prefix(std::min(text->size(), taken.size() + 1));
  return taken;
}

// Takes the text up to the end of a statement, and that end with it; "2>&1" is within a statement.
std::string_view TakeStatement(std::string_view* line) {
  size_t end = line->find_first_of(";&|");
  while (end != line->npos && end > 0 && (*line)[end] == '&' && (*line)[end - 1] == '>')
    end = line->find_first_of(";&|", end + 1);
  const std::string_view taken = line->substr(0, end);
  line->remove_prefix(std::min(line->size(), taken.size() + 1));
  return taken;
}

// Returns the line up to a word that begins with '#'.
std::string_view WithoutComment(std::string_view line) {
  for (size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
    if (at == 0 || kBlanks.find(line[at - 1]) != kBlanks.npos) return line.substr(0, at);
  }
  return line;
}

// Recognises ">log" and "2>&1"; after a lone ">" the file is the next word.
bool IsRedirection(std::string_view word) {
  const size_t begin = word.find_first_not_of("0123456789");
  return begin != word.npos && kArrows.find(word[begin]) != kArrows.npos;
}

// "NAME=" is at its beginning.
bool IsAssignment(std::string_view word) {
  const size_t equals = word.find('=');
  return equals != word.npos && equals > 0 &&
         word.substr(0, equals).find_first_of("/.$\"'") == word.npos;
}

// Takes the rest of a value that has blanks in it: a text in quotes, or an array.
void TakeRestOfValue(std::string_view word, std::string_view* statement) {
  const std::string_view value = word.substr(word.find('=') + 1);
  if (value.empty()) return;
  const bool is_array = value.front() == '(';
  if (!is_array && kQuotes.find(value.front()) == kQuotes.npos) return;
  const char end = is_array ? ')' : value.front();
  if (value.size() > 1 && value.back() == end) return;
  while (!statement->empty() && !TakeUntil(kBlanks, statement).ends_with(end)) {
  }
}

std::string_view CommandOf(std::string_view statement) {
  while (!statement.empty()) {
    const std::string_view word = TakeUntil(kBlanks, &statement);
    if (word.empty() || IsOneOf(kBefore, word)) continue;
    if (IsOneOf(kAlone, word)) return {};
    if (IsRedirection(word)) {
      if (kArrows.find(word.back()) != kArrows.npos) TakeUntil(kBlanks, &statement);
    } else if (IsAssignment(word)) {
      TakeRestOfValue(word, &statement);
    } else if (!word.ends_with(')') || word.find('(') != word.npos) {  // none of case's patterns
      return word.substr(0, word.find_first_of(kArrows));
    }
  }
  return {};
}

}  // namespace

std::string_view FirstCommand(std::string_view script) {
  if (script.starts_with(kTaskScriptPreamble)) script.remove_prefix(kTaskScriptPreamble.size());
  while (!script.empty()) {
    std::string_view line = WithoutComment(TakeUntil("\n", &script));
    while (!line.empty()) {
      const std::string_view command = CommandOf(TakeStatement(&line));
      if (!command.empty()) return command;
    }
  }
  return {};
}

}  // namespace muster::contract
