// The broker's address, the token and the form of results, from the command line, the environment,
// the user's context and the user's file, in this order. Without them it is the user's own broker,
// where deploy/quickstart starts it.
#ifndef MUSTER_CLIENTS_CLI_CONFIG_H_
#define MUSTER_CLIENTS_CLI_CONFIG_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/invocation.h"
#include "clients/cli/render.h"
#include "clients/cpp/slurm/credentials.h"

namespace muster::cli {

struct Config {
  std::string broker;  // empty: nobody named one, and there is no place for one of the user's own
  // The source of the address, for errors: "named by MUSTER_BROKER". Empty: the command line.
  std::string broker_origin;
  std::string token;  // goes with every call; empty: none
  std::string ca;     // of a broker over TLS, as PEM; empty: not given
  Format format = Format::kTable;
  // The variables that a batch script takes along only if its user names them.
  std::vector<std::string> leave_behind = client::slurm::DefaultLeaveBehind();
};

// getenv, or a stand-in: a null pointer for a variable that is not set.
using Environment = std::function<const char*(const char* name)>;

// $XDG_CONFIG_HOME/muster/config.yaml, else $HOME/.config/muster/config.yaml; empty if neither is
// set.
std::string ConfigPath(const Environment& environment);

// contexts.yaml beside it; empty likewise.
std::string ContextsPath(const Environment& environment);

// The address of the user's own broker: broker.sock in $XDG_STATE_HOME/muster, else in
// $HOME/.local/state/muster. Empty if neither is set, or if the path is longer than a socket's.
std::string OwnBroker(const Environment& environment);

// INVALID_ARGUMENT: a file is there and has a problem; "FILE:LINE:COLUMN: ...". A file that is not
// there is none. NOT_FOUND: there is no such context. Others: the token or the CA cannot
// be read.
absl::StatusOr<Config> LoadConfig(const Invocation& call, const Environment& environment);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_CONFIG_H_
