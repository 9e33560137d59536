// Values of secrets that jobs have in their files: they become secrets for one job each.
#ifndef MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_
#define MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"

namespace muster::cli {

// Names the secrets by the request, so that a repeat of it asks for the same jobs.
void NameLocalSecrets(const std::string& request_id, client::JobFile* file);

// The secrets that were set for one submit. They are removed again unless they are kept: after a
// submit that was refused. Those that cannot be removed then go by themselves in a day.
class SentSecrets {
 public:
  explicit SentSecrets(Session* session) : session_(*session) {}
  ~SentSecrets();
  SentSecrets(const SentSecrets&) = delete;
  SentSecrets& operator=(const SentSecrets&) = delete;

  // Sets those that have been named. Secrets of an earlier try of the same request are there
  // already, and stay.
  absl::Status Send(const client::JobFile& file);
  void Keep() { made_.clear(); }

 private:
  Session& session_;
  std::vector<std::string> made_;
};

// Leaves them out of the specs, which are only to be judged.
void LeaveOutLocalSecrets(client::JobFile* file);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_LOCAL_SECRETS_H_
