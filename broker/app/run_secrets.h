// Handles the secrets of jobs: looks for them at a submit, tells them to the agent that launches a
// run, and removes them when they were for one job that has ended.
#ifndef MUSTER_BROKER_APP_RUN_SECRETS_H_
#define MUSTER_BROKER_APP_RUN_SECRETS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/app/principal.h"
#include "broker/app/services.h"
#include "broker/core/core.h"
#include "broker/engine/engine.h"
#include "muster/agent/v1/secret_link.pb.h"

namespace muster::broker {

// Any thread may use it. FAILED_PRECONDITION, NO_SUCH_SECRET or SECRETS_TOO_LARGE: a job of the
// submit cannot have what it names; the metadata has the job's place in the request.
// PERMISSION_DENIED, NOT_ALLOWED: a caller whom nobody knows.
absl::Status CheckJobSecrets(const Principal& principal, const Services& services,
                             const core::Submit& submit);

// Notes, once the answer is there, which jobs the submit's secrets for one job belong to.
SubmitDone NotingSecrets(const Services& services, const core::Submit& submit, SubmitDone done);

// Waits for the disk. Errors as of SecretLinkService.FetchRunSecrets, whose caller has been checked
// but for the journal.
absl::StatusOr<agent::v1::FetchRunSecretsResponse> FetchRunSecrets(
    const Services& services, const agent::v1::FetchRunSecretsRequest& request);

// Waits for the disk. Removes secrets for one job that nobody needs any more.
absl::Status RemoveSpentSecrets(const Services& services);

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_RUN_SECRETS_H_
