// Sending jobs to the broker, so that a repeat makes no second one.
#ifndef MUSTER_CLIENTS_CLI_SUBMISSION_H_
#define MUSTER_CLIENTS_CLI_SUBMISSION_H_

#include <variant>

#include "absl/status/status.h"
#include "clients/cli/field_flags.h"
#include "clients/cli/verbs.h"
#include "clients/cpp/jobfile.h"
#include "muster/v1/jobs_service.pb.h"

namespace muster::cli {

// The flags of submit, run and plan.
FieldFlags JobFlags();

// The jobs that the command line names: those of its file, or its command, with its flags over
// them. Otherwise the exit code, after the error has been written.
std::variant<client::JobFile, int> AskedFor(Session& session);

// A spec that the broker would refuse is refused here without a round trip. The bad fields are
// named by their flags.
absl::Status CheckSpec(const v1::JobSpec& spec, const FieldFlags& flags);

// Sends the jobs, all or none, under the request id of the command line or a new one, after the
// files that they bring along; of files, validate_only says only how many these are. Otherwise the
// exit code, after the error has been written; it says which --request-id a repeat by hand needs,
// if the broker may have the jobs all the same.
std::variant<v1::SubmitJobsResponse, int> SendJobs(Session& session, client::JobFile jobs,
                                                   const FieldFlags& flags, bool validate_only);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_SUBMISSION_H_
