// The form that scripts of SkyPilot tasks have as scripts of jobs.
#ifndef MUSTER_PROTO_CONTRACT_TASK_SCRIPT_H_
#define MUSTER_PROTO_CONTRACT_TASK_SCRIPT_H_

#include <string_view>

namespace muster::contract {

// Stands before the text of a task's `run` or `setup`, which SkyPilot has bash run. sh begins the
// file that holds both, hands it to bash where there is one, and goes on where there is none:
// images such as alpine's have no bash, and bash is not everywhere /bin/bash. The variable keeps
// bash from doing so again. It is a line of its own, since sh reads a whole line before it begins:
// the text may have what only bash understands. Both streams are one log, in the order in which
// they are written, and the text begins on that line, so that the shell counts its lines with an
// error of one.
inline constexpr std::string_view kTaskScriptPreamble =
    "[ -n \"$MUSTER_BASH\" ] || ! command -v bash >/dev/null 2>&1 || "
    "exec env MUSTER_BASH=1 bash \"$0\" \"$@\"\n"
    "unset MUSTER_BASH; exec 2>&1; ";

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_TASK_SCRIPT_H_
