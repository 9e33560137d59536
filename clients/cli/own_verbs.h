// The verbs that read their words themselves, as other programs' users write them.
#ifndef MUSTER_CLIENTS_CLI_OWN_VERBS_H_
#define MUSTER_CLIENTS_CLI_OWN_VERBS_H_

#include <span>
#include <string_view>

#include "clients/cli/invocation.h"

namespace muster::cli {

// Ends the flags: the words behind it are a command, or names that may begin with a dash.
inline constexpr std::string_view kEndOfFlags = "--";

struct OwnVerb {
  std::string_view name;
  Verb verb;
  std::string_view description;
  std::string_view help;      // what --help says besides: an example, and what is honoured
  bool has_commands = false;  // "muster sky exec", "muster sky queue" and so on
};
std::span<const OwnVerb> OwnVerbs();

// Returns whether the word is an option of the command itself whose value is the next word.
bool TakesNextWord(std::string_view option);

// The place of the verb: the first word that is no option of the command itself and no value of
// one; `end` if there is none.
char** FindVerb(char** begin, char** end);

// The place behind the verb, if the command line has one that reads its words itself; `end` if it
// has not, or asks for help alone.
char** OwnWords(char** begin, char** end);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_OWN_VERBS_H_
