// Finds the command that a script runs, from which the job gets its name.
#ifndef MUSTER_PROTO_CONTRACT_FIRST_COMMAND_H_
#define MUSTER_PROTO_CONTRACT_FIRST_COMMAND_H_

#include <string_view>

namespace muster::contract {

// Returns the word that a shell would most likely run first. Keywords ("if"), tests ("["),
// assignments, comments and what stands before a task's script do not count. Empty: there is none.
// Quotes are not looked into.
std::string_view FirstCommand(std::string_view script);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FIRST_COMMAND_H_
