// muster-bench TOOL [options] runs a tool; see tools.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>

#include "contract/text.h"
#include "tests/bench/tools/tools.h"

// Only a want of memory can throw, and ends the program either way.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  using muster::bench::Load;
  Load load;
  std::function<absl::Status(const Load&)> tool;
  CLI::App app("Load and baselines for tests/bench/run");
  app.require_subcommand(1);
  auto add = [&](const char* name, const char* what, absl::Status (*run)(const Load&)) {
    CLI::App* verb = app.add_subcommand(name, what);
    verb->add_option("--address", load.address, "unix:PATH or HOST:PORT");
    verb->add_option("--seconds", load.seconds, "How long to go on");
    verb->add_option("--in-flight", load.in_flight, "Calls at the same time");
    verb->add_option("--batch", load.batch, "Jobs in each call or transaction");
    verb->add_option("--jobs", load.jobs, "Stop after as many jobs");
    verb->add_option("--different", load.different, "Give each job requirements of its own");
    verb->add_option("--agents", load.agents, "Simulated agents");
    verb->add_flag("--together", load.together, "Let no job end before all of them run");
    verb->add_option("--pace", load.pace, "Jobs that start, and then end, in a second");
    verb->add_option("--watchers", load.watchers, "Streams that watch");
    verb->add_option("--rate", load.rate, "Jobs or calls in a second");
    verb->add_option("--pages", load.pages, "Pages to read");
    verb->add_option("--filter", load.filter, "Filter of ListJobs");
    verb->add_option("--dir", load.dir, "An empty directory for files");
    verb->add_option("--ca-file", load.ca_file, "The CA of a broker at tls:HOST:PORT");
    verb->add_option("--token-file", load.token_file, "The token for it");
    verb->callback([&tool, run] { tool = run; });
  };
  add("echo", "Serve the baseline of submit", muster::bench::ServeEcho);
  add("stored-echo", "Serve the baseline of submit with the rows on disk",
      muster::bench::ServeStored);
  add("submit", "Submit jobs", muster::bench::Submit);
  add("submit-http", "Submit jobs over HTTP", muster::bench::SubmitOverHttp);
  add("insert-rows", "Insert the rows of jobs with SQLite alone", muster::bench::InsertRows);
  add("full-life", "Submit jobs and let simulated agents end them", muster::bench::FullLife);
  add("assign-latency", "Time from submit to agent", muster::bench::AssignLatency);
  add("first-assignment", "Wait for the first assignment", muster::bench::FirstAssignment);
  add("list-pages", "Read pages of jobs", muster::bench::ListPages);
  add("ingest-logs", "Push logs with a follower", muster::bench::IngestLogs);
  add("plan-rounds", "Rounds of the machines' queue", muster::bench::PlanRounds);
  add("launch-runs", "Launches on a Kubernetes cluster of 100,000 pods", muster::bench::LaunchRuns);
  add("refit-rounds", "Another inventory under a queue of different jobs",
      muster::bench::RefitRounds);
  add("make-identities", "Make certificates for agents", muster::bench::MakeIdentities);
  add("hold-agents", "Connect idle agents", muster::bench::HoldAgents);
  add("watch-changes", "Watch all jobs with many streams", muster::bench::WatchChanges);
  add("watch-without-reading", "Watch and read nothing", muster::bench::WatchWithoutReading);
  add("get-jobs", "Ask for a job that waits while others change", muster::bench::GetJobs);
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = tool(load); !status.ok()) {
    fmt::print(stderr, "muster-bench: {}\n", muster::ToStd(status.message()));
    return 1;
  }
  return 0;
}
