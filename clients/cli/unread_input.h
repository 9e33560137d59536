// Standard input that somebody means for a job, and that no job gets.
#ifndef MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_
#define MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_

#include <string>

namespace muster::cli {

// Finds out whether our standard input was meant for this command. It never waits and reads
// nothing. `file`: the file that the command itself reads, which may be the same (/dev/stdin);
// empty: none.
//
// - A file counts if it has bytes of which nobody has read any.
// - A pipe or a socket counts if it has bytes. While it has none, it counts if another process than
//   our parent may still write there: the pipeline of a shell, whose command is at work yet.
// - A pipe or a socket without bytes whose other end is our parent's does not count. Programs that
//   start commands (Java, Node, Python with stdin=PIPE, docker exec -i, sshd) give each of them
//   one, and most never write there: a remark at each call would teach people to ignore it. The
//   same holds if our parent cannot be looked at, which is so of sshd and sudo. `--wait` looks once
//   more at the job's end.
// - Input that our parent has as its own standard input never counts. It is the list of a loop
//   (`while read x; do muster run ...; done <list`), the script that a shell reads from a pipe (as
//   CI does), or the input that cron gives to all. A here-document of dash is a pipe of dash
//   itself, and is taken for shared, too.
// - A terminal, /dev/null, an empty file, a pipe that nobody can write to any more and a closed
//   standard input never count.
bool HasUnreadInput(const std::string& file);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_UNREAD_INPUT_H_
