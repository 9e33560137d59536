// Explains what is wrong with a daemon's command line.
#ifndef MUSTER_PROTO_DAEMON_COMMAND_LINE_H_
#define MUSTER_PROTO_DAEMON_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "daemon/settings.h"

namespace muster {

// Describes the words that no flag of `program` takes, at least one: the first that looks like a
// flag, with the one that was probably meant, else the first word. `own_flags` are the flags that
// are no settings.
std::string UnknownWords(std::string_view program, const std::vector<std::string>& words,
                         const std::vector<Setting>& settings,
                         const std::vector<std::string>& own_flags);

}  // namespace muster

#endif  // MUSTER_PROTO_DAEMON_COMMAND_LINE_H_
