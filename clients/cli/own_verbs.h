// The verbs that read their words themselves, as other programs' users write them.
#ifndef MUSTER_CLIENTS_CLI_OWN_VERBS_H_
#define MUSTER_CLIENTS_CLI_OWN_VERBS_H_

#include <span>
#include <string_view>

#include "clients/cli/invocation.h"

namespace muster::cli {

struct OwnVerb {
  std::string_view name;
  Verb verb;
  std::string_view description;
  std::string_view help;      // what --help says besides: an example, and what is honoured
  bool has_commands = false;  // "muster sky exec", "muster sky queue" and so on
};
std::span<const OwnVerb> OwnVerbs();

// The place behind the verb, if the command line has one that reads its words itself; `end` if it
// has not, or asks for help alone.
char** OwnWords(char** begin, char** end);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_OWN_VERBS_H_
