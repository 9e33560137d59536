// Values of secrets that jobs have in their files: they become secrets for one job each.
#ifndef MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_
#define MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_

#include <string>

#include "absl/status/status.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"

namespace muster::cli {

// Names the secrets by the request, so that a repeat of it asks for the same jobs.
void NameLocalSecrets(const std::string& request_id, client::JobFile* file);

// Sets the secrets that have been named; those of an earlier try of the same request are there.
absl::Status SendLocalSecrets(Session& session, const client::JobFile& file);

// Removes them again, after a submit that was refused. Those that cannot be removed now go by
// themselves in a day.
void TakeBackLocalSecrets(Session& session, const client::JobFile& file);

// Leaves them out of the specs, which are only to be judged.
void LeaveOutLocalSecrets(client::JobFile* file);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_
