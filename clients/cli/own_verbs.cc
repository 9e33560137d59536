#include "clients/cli/own_verbs.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace muster::cli {
namespace {

constexpr std::array kVerbs = {
    OwnVerb{
        "sbatch", Verb::kSbatch, "Submit a batch script, as sbatch does",
        "For example:\n  muster sbatch --time=2:00:00 train.sh --lr 0.1\n\n"
        "Takes sbatch's options, long and short, before the script; directives (#SBATCH) and "
        "the variables SBATCH_* count as with sbatch. -M names Muster's clusters. --array makes a "
        "job of each task, up to 10000 (1-100%4: four at a time); the "
        "number of the first one stands for all of them, here as in --dependency, scancel, squeue "
        "and sacct. --export names the variables of your shell that the job gets. --broker ADDRESS "
        "goes before the verb."},
    OwnVerb{
        "squeue", Verb::kSqueue, "List jobs that have not ended, as squeue does",
        "For example:\n  muster squeue --me -t PD -o '%.8i %.9P %.20j %.2t %.10M %R'\n\n"
        "Honours -u --me -j -n -t -p -A -q -R -M -w -h -l -o -O -S -i --start --json -a and -r. "
        "Formats: %i %A %F %K %j %u %a %P %q %t %T %M %l %L %D %C %c %m %b %p %Q %r %R %N %B %S "
        "%e %V %k %Z %v %f %x %n %y %E %W. %i is Muster's number (42_5: task 5 of array 42), %A "
        "Slurm's own. Tasks of an array that wait share a line, but not with -r."},
    OwnVerb{"scancel", Verb::kScancel, "Cancel jobs, as scancel does",
            "For example:\n  muster scancel --me --state=PENDING\n\n"
            "Honours numbers and -u --me -n -t -p -A -q -w -R -M -Q -v. Without numbers and -u it "
            "cancels your own jobs only. It sends no signals."},
    OwnVerb{"sacct", Verb::kSacct, "List jobs and their ends, as sacct does",
            "For example:\n  muster sacct -S now-1days -X -o JobID,JobName%20,State,ExitCode\n\n"
            "Honours -j -u -a --me -s -S -E -r -A -q -N -M --name -X -n -p -P --delimiter -b -l -e "
            "and -o. One line for each job, without its steps. What a job has used is not known: "
            "MaxRSS and the like are empty, TotalCPU is 00:00:00."},
    OwnVerb{
        "sinfo", Verb::kSinfo, "Show partitions and nodes, as sinfo does",
        "For example:\n  muster sinfo -N -o '%N %t %C %G'\n\n"
        "Honours -p -n -t -d -r -e -N -l -s -R -i -h -M -a and -o. Formats: %P %R %a %l %L %s %D "
        "%t %T %N %n %c %C %m %G %f %b %E %u %H %A %F."},
    OwnVerb{
        "sky", Verb::kSky, "SkyPilot's verbs: sky exec, queue, logs, cancel, status",
        "For example:\n  muster sky exec lab task.yaml\n  muster sky exec lab --gpus H100:0.5 -d "
        "-- "
        "python train.py\n  muster sky queue lab -s\n  muster sky logs lab 42 --no-follow\n\n"
        "exec CLUSTER TASK.yaml|-- COMMAND: submits to that cluster and follows the log. -n -d -e "
        "--name --num-nodes --gpus --workdir --env --env-file --secret --detach-run --dryrun\n"
        "queue [CLUSTER...]: -s --skip-finished, -u --all-users\n"
        "logs CLUSTER [JOB]: --status, --no-follow, --tail N; without JOB the latest one\n"
        "cancel CLUSTER [JOB...]: -a --all, -u --all-users, -y --yes; without JOB the latest one "
        "that runs\n"
        "status [CLUSTER...]\n\n"
        "Jobs have Muster's numbers. exec and logs exit with 0 if the job succeeded, 100 if it "
        "failed, 101 if it has not ended (logs --status), 102 if there is no such job, 103 if it "
        "was canceled.",
        true},
};
// Options of the command itself, before the verb; their values are words of their own.
constexpr std::array<std::string_view, 3> kWithValue = {"--broker", "-o", "--output"};

}  // namespace

std::span<const OwnVerb> OwnVerbs() { return kVerbs; }

char** OwnWords(char** begin, char** end) {
  char** at = begin;
  while (at < end && (*at)[0] == '-') {
    const bool has_value = std::find(kWithValue.begin(), kWithValue.end(), *at) != kWithValue.end();
    at += has_value ? 2 : 1;
  }
  if (at >= end) return end;
  const auto own = std::find_if(kVerbs.begin(), kVerbs.end(),
                                [&](const OwnVerb& verb) { return verb.name == *at; });
  if (own == kVerbs.end()) return end;
  const auto is_help = [end](char** word) {
    return end - word == 1 && std::string_view(*word) == "--help";
  };
  if (is_help(at + 1)) return end;
  return own->has_commands && end - at > 1 && is_help(at + 2) ? end : at + 1;
}

}  // namespace muster::cli
