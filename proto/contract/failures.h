// Makes the sentences and remedies of runs' failures from their codes and fields, as
// sentences.h does for other facts; no agent and no client writes one. The tables of
// failure_causes, failure_patterns and slurm_refusals have the remedies that depend on more
// than the code. Pure.
#ifndef MUSTER_PROTO_CONTRACT_FAILURES_H_
#define MUSTER_PROTO_CONTRACT_FAILURES_H_

#include <string>

#include "contract/failure_causes.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// The parts of a failure beside its code and class. Empty: nothing.
struct FailureParts {
  std::string detail = {};
  std::string subject = {};
  std::string meaning = {};
  std::string object = {};
  FailureCause cause = FailureCause::kNone;
  v1::FailurePhase phase = v1::FAILURE_PHASE_UNSPECIFIED;
  bool is_retriable = false;
};
v1::Failure MakeFailure(v1::FailureCode code, v1::FailureClass failure_class,
                        const FailureParts& parts = {});

// Writes the sentence anew, and the remedy where there is none, from the other fields: to be
// called after each change of one. A failure without a code, which an earlier release made, stays
// as it is.
void PutSentence(v1::Failure* failure);
// Writes both anew, the remedy as that of the cause.
void PutSentence(FailureCause cause, v1::Failure* failure);

// "ask for less, or choose another cluster": the remedy as the lines of checks have it.
std::string AsClause(std::string remedy);
// The remedy while the cluster still waits for what the failure would be about.
std::string RemedyWhileWaiting(v1::FailureCode code, FailureCause cause);

// The end of a process as the cluster tells it: the command's, or that of the setup script.
v1::ExitStatus ExitWithCode(int code);
v1::ExitStatus ExitBySignal(int signal);
// Sets the code and the class of a command, or a setup script, that ended so by itself. Needs the
// phase.
v1::Failure OwnEnd(const v1::ExitStatus& exit, const FailureParts& parts);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_FAILURES_H_
