// Standard input that somebody means for a job, and that no job gets.
#ifndef MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_
#define MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_

#include <string>

namespace muster::cli {

// Finds out whether our standard input has bytes that were meant for this command: a file of which
// nobody has read anything, or a pipe with bytes in it that our parent does not have as its own
// standard input. It never waits and reads nothing.
//
// Everything else is shared: the list of a loop (`while read x; do muster run ...; done <list`), of
// which `read` has taken a line before us, the script that a shell reads from a pipe (as CI does),
// or what cron gives to all. A remark at each job of a loop would be noise, so that nothing is said
// then, nor if the parent's standard input cannot be looked at. A here-document of dash is a pipe
// of dash itself, and is taken for shared, too. A terminal, /dev/null and sockets are never meant
// for a job. `file`: what the command itself reads, which may be the same (/dev/stdin); empty:
// nothing.
bool HasUnreadInput(const std::string& file);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_
