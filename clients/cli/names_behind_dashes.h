// The words behind "--" of verbs that take no command: names, even if they look like flags or
// verbs. CLI11 2.1 reads them as flags of the command itself once a verb has all words that it must
// have, so they carry a mark while it parses them.
#ifndef MUSTER_CLIENTS_CLI_NAMES_BEHIND_DASHES_H_
#define MUSTER_CLIENTS_CLI_NAMES_BEHIND_DASHES_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace muster::cli {

// Returns the words of a command line without the first "--", each word behind it with the mark.
std::vector<std::string> MarkNames(const std::vector<const char*>& words);

// Takes the mark from the word, if it has one.
std::string WithoutMark(std::string word);

// Lets the words of all verbs come without the mark.
void TakeMarks(CLI::App* app);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_NAMES_BEHIND_DASHES_H_
