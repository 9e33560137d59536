// Declares the parts of the benchmarks that must be fast: load for a broker that runs in a process
// of its own, and the bare things that it is compared with. Each prints one JSON object;
// tests/bench/run starts them and makes the table.
#ifndef MUSTER_TESTS_BENCH_TOOLS_TOOLS_H_
#define MUSTER_TESTS_BENCH_TOOLS_TOOLS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::bench {

struct Load {
  std::string address;  // as the command takes it
  int seconds = 5;
  int in_flight = 1;       // calls at the same time
  int batch = 1;           // jobs in each call
  uint64_t jobs = 0;       // 0: as many as the seconds allow
  bool different = false;  // no two jobs have the same requirements
  int agents = 1;
  bool together = false;  // no job ends before all of them run
  int pace = 0;           // jobs/s that start, and then that end; 0: as many as the broker takes
  int watchers = 1;
  int rate = 1000;  // jobs/s
  int pages = 1000;
  std::string filter;
  std::string dir;
  std::string ca_file;     // of a broker over TLS
  std::string token_file;  // likewise
};

// Runs a server that answers submits and agents' messages at once. Prints {"pid"} and serves until
// its standard input ends.
absl::Status ServeEcho(const Load& load);
// The same for submits, each answered once its rows are in the broker's store in `dir`, and nothing
// else: all calls that wait make one commit.
absl::Status ServeStored(const Load& load);
// Prints {"per_s", "p50_us", "p99_us"}: jobs accepted in a second, and the time of a call.
absl::Status Submit(const Load& load);
// Does the same by SubmitJob over HTTP, at 127.0.0.1:PORT with a token.
absl::Status SubmitOverHttp(const Load& load);
// Prints {"per_s"}: rows of accepted jobs, written by bare SQLite, `batch` jobs at a time.
absl::Status InsertRows(const Load& load);
// Prints {"per_s"}: jobs from submit to end through simulated agents; with `together` it fails
// unless all of them run at the same time. A `pace` needs `together` and `jobs`.
absl::Status FullLife(const Load& load);
// Prints {"p50_ms", "p99_ms"}: from the call of SubmitJob to the assignment at a simulated agent.
absl::Status AssignLatency(const Load& load);
// Prints {"unix_s"}: when an agent that dials without pause got its first assignment.
absl::Status FirstAssignment(const Load& load);
// Prints {"p50_ms", "p99_ms"}: ListJobs, page after page, from the start again at the end.
absl::Status ListPages(const Load& load);
// Prints {"per_s", "added_p50_ms"}: bytes into the archive with one follower that keeps up, and how
// much later than they were sent single lines reach a follower.
absl::Status IngestLogs(const Load& load);
// {"fill_ms", "usual_ms", "usual_each_ms", "distinct_ms", "distinct_each_ms"}, of processor time,
// with a queue of `jobs` runs on a hundred hosts: the round that fills the hosts, the slowest of
// those in which one run has ended, and to look for a place for each run once; with runs as people
// ask for them, and with runs that all differ.
absl::Status PlanRounds(const Load& load);
// Prints {"all_ms"}, of processor time: what `jobs` launches of one pod with a GPU cost on a
// Kubernetes cluster of 100,000 pods on 1,000 nodes, without their calls to the server: the share
// of a node that the GPU brings along, whether the run ever fits, its turn in the queue, and the
// news of its pod.
absl::Status LaunchRuns(const Load& load);
// {"message_ms", "slowest_ms", "all_ms", "turns", "checks_ms", "fitting"}, of processor time, with
// a queue of `jobs` jobs that all differ, half of which no longer fit the only cluster once its
// agent has sent another inventory: what the core does with that message alone, the slowest turn of
// its thread, all turns until it is done, how many; and to check each job against the cluster once,
// which fits so many.
absl::Status RefitRounds(const Load& load);
// Writes certificates for the clusters idle-0, idle-1 ... into `dir`, and the CA that has signed
// them as client-ca.pem. Prints {"identities"}.
absl::Status MakeIdentities(const Load& load);
// Returns the directory there of an agent's certificate.
std::string IdentityDirectory(const Load& load, int agent);
// Connects agents, over TLS with the certificates in `dir`, prints {"agents"} and stays connected
// until standard input ends.
absl::Status HoldAgents(const Load& load);

// Watches all jobs with many streams and prints {"watchers"}. Once standard input has ended and
// each has got all that there is: {"complete", "transitions"}, how many of them saw every
// transition that ListTransitions then tells of, once and in order, and how many transitions these
// are.
absl::Status WatchChanges(const Load& load);
// Does the same with streams that read nothing after their begin.
absl::Status WatchWithoutReading(const Load& load);
// Submits a held job, prints {"job"} and asks for it `rate` times a second until standard input
// ends: {"calls", "p50_ms", "p99_ms"} of the calls between whose begin, or that of the call before,
// and whose answer a stream that watches all jobs gave a change.
absl::Status GetJobs(const Load& load);

// Returns the jobs that the load submits.
v1::JobSpec SampleSpec(uint64_t number);

// Reads standard input to its end.
void AwaitEndOfInput();

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_TOOLS_H_
