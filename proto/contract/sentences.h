// The sentences and remedies of facts. They are made here, from codes and fields, so that every
// client shows the same words and no program has to read them. The sentences of
// the issues of clusters are in issues.h.
#ifndef MUSTER_PROTO_CONTRACT_SENTENCES_H_
#define MUSTER_PROTO_CONTRACT_SENTENCES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// The reason of a waiting job lists at most this many clusters, as the proto says.
inline constexpr size_t kMaxExplainedClusters = 10;
// Clusters that its sentence names.
inline constexpr size_t kMaxNamedClusters = 5;

// The parts of a reason beside its code. Empty and absent: nothing.
struct ReasonParts {
  std::string detail = {};
  std::string scheduler_reason = {};
  std::string subject = {};
  std::string cluster = {};
  std::string pool = {};
  std::string remedy = {};  // in place of the remedy that the code has
  std::optional<absl::Time> since = {};
  std::optional<absl::Time> until = {};
};
v1::StateReason MakeReason(v1::StateReasonCode code, const ReasonParts& parts = {});

// Writes the sentence anew, and the remedy where there is none, from the other fields.
void PutSentence(v1::StateReason* reason);

// Says something more behind the sentence, which has to be there.
void AddToSentence(const std::string& words, v1::StateReason* reason);

// A job waits for the end of another one, and of others besides.
v1::StateReason WaitsForJob(const std::string& job, size_t others);

// A job waits until `retry_time` for another run, after `last` failed.
v1::StateReason RetryDelay(const v1::Run& last, const google::protobuf::Timestamp& retry_time);

// Makes the reason of a run that has none from its cluster, from its state. No code: the run does
// not wait.
v1::StateReason Unexplained(const v1::Run& run);

// The cluster could run the job, and its operators let it take no new runs.
v1::StateReason Cordoned(const v1::ClusterCordon& cordon, const std::string& cluster);
// Says it without the job: "cordoned by ann since 2026-01-31T12:00:00Z: new drivers".
std::string CordonText(const v1::ClusterCordon& cordon);

// A job waits, and its cluster has been asked to hold it. It may start there all the same, so that
// the code is that of `waits`, which is why its run waits.
v1::StateReason HoldAsked(const v1::StateReason& waits);

// Says that the job was canceled and has yet to end; the code of `waits` stays, if it has one.
v1::StateReason CancelAsked(const v1::StateReason& waits);

// The reason why there is no word of a cluster's jobs: its agent is not connected, or the scheduler
// does not answer the agent, which says so in `scheduler_error`.
struct Silence {
  std::string cluster;
  bool is_agent_connected = false;
  std::string scheduler_error;
  std::optional<absl::Time> since;  // the last word; nothing: not known
};
// Says it of a job that the cluster has. The reason that the job has becomes the one known last.
v1::StateReason NoWord(const Silence& silence, const v1::Job& job);

// Puts into the words of a job's failure what after_runs says.
void SayAfterRuns(v1::Failure* failure);
// Puts the job's limit into the words of a time-out.
void SayTimeLimit(const v1::JobSpec& spec, v1::Failure* failure);

// Returns the reason that no cluster has a job: the obstacle of each, the nearest to having it
// first. Empty: it may use none.
v1::StateReason NotPlaced(std::vector<v1::StateReason> clusters);
// Returns one line with the remedies of all clusters that the sentence names, for an error.
std::string NotPlacedInFull(const v1::StateReason& not_placed);
// Returns what the sentence and the remedy of such a reason leave out, one line for each cluster:
// the reasons of those not named, and remedies other than the first cluster's.
std::vector<std::string> BesidesTheFirst(const v1::StateReason& not_placed);

// Returns a user's request as the evidence of the step that it leads to: "canceled by ann: too
// slow". `verb`: "canceled"; `more` stands behind the user's name. The time is the caller's.
struct UserRequest {
  std::string verb;
  std::string user;
  std::string more = {};
  std::string reason = {};
};
v1::Evidence RequestEvidence(const UserRequest& request);

// Returns the words that follow the name of a user who submits a job with another one's spec.
std::string WithSpecOf(uint64_t job);

// Returns the details of the evidence of steps that the broker takes by itself.
std::string AssignedTo(std::string_view cluster);
std::string HeldTooLate(const v1::Run& begun);
std::string WithdrawnTooLate(const v1::Run& begun);
std::string Drained(const v1::ClusterCordon& cordon, std::string_view cluster);
std::string SoonerElsewhere(std::string_view cluster, absl::Duration since);
// Run `number` of at most `max_runs` follows because `failed` did.
std::string RunFollows(uint32_t number, uint32_t max_runs, absl::Time not_before,
                       const v1::Run& failed);
// A job ended otherwise than one that depends on it needs.
std::string DependencyEnded(uint64_t job, v1::JobState end, v1::JobOutcome needed);

// Makes the warning of a submit from the check of a plan that warned. The agent that makes it does
// not name the cluster; the broker does.
v1::SubmitWarning MakeWarning(v1::SubmitWarningCode code, const v1::ClusterCheck& check);
void SetCluster(const std::string& cluster, v1::SubmitWarning* warning);
// An accepted job waits for the place that it names.
v1::SubmitWarning WaitsForPlace(uint64_t job, const v1::StateReason& reason);

// A job's priority changes while the cluster that it names has its run.
v1::SubmitWarning RunKeepsPriority(const v1::Job& job);

// Returns one line for people: the sentence, and the remedy behind it.
std::string WithRemedy(const std::string& message, const std::string& remedy);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SENTENCES_H_
