// The supervisor's program, and how it gets onto a host over SSH.
#ifndef MUSTER_AGENTS_MACHINES_REMOTE_SUPERVISOR_PROGRAM_H_
#define MUSTER_AGENTS_MACHINES_REMOTE_SUPERVISOR_PROGRAM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/hosts/host.h"

namespace muster::machines {

// The program that is to be put onto each host.
struct SupervisorProgram {
  std::string content;
  std::string digest;  // SHA-256 in hexadecimal

  // Returns the program's directory, below the agent's on the host, which so has each version once.
  std::string DirectoryIn(const std::string& directory) const;
};

// INTERNAL or so: it cannot be read.
absl::StatusOr<SupervisorProgram> ReadSupervisorProgram(const std::string& path);

// Makes the agent's `directory` on the host, `runs` in it, and puts the program there; returns its
// path. A program that is there already is used only if it is the same, and nobody but the user, or
// root, can change it or the directories (from the one around `directory` on). UNAVAILABLE: the
// host cannot be asked. Others: what is wrong there, and the remedy.
absl::StatusOr<std::string> PutSupervisor(const SupervisorProgram& program,
                                          const std::string& directory, hosts::Host* host);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_REMOTE_SUPERVISOR_PROGRAM_H_
