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
        "Which jobs: -j numbers, -u users, --me your own, -n names, -t states (all: also those "
        "that "
        "ended in the last 5 minutes), -p partitions, -A accounts, -q QOS, -R reservations, -w "
        "nodes, -M clusters\n"
        "How: -o columns by letters, -O by names, -l more columns, -h no heading, -S order, -r a "
        "line for each task of an array, --start expected starts, --json, -i look again every "
        "SECONDS. -a and --local have no effect\n"
        "Variables: SQUEUE_FORMAT, SQUEUE_FORMAT2, SQUEUE_USERS and others of squeue's, "
        "SLURM_TIME_FORMAT\n\n"
        "Letters of -o and -S:\n"
        "  %i number (42_5: task 5 of array 42)  %F array  %K task  %A Slurm's own number\n"
        "  %j name  %u user  %a account  %q QOS  %w workload key  %k comment  %Z directory\n"
        "  %P partition  %t %T state  %r reason  %R nodes or reason  %p %Q Muster's priority  %y "
        "nice\n"
        "  %S start  %e end  %V submit  %M time used  %L time left  %l time limit\n"
        "  %N nodes  %D how many  %B the first  %n requested  %x excluded  %f features\n"
        "  %C cores  %c cores of a node  %m memory of a node or core  %b GPUs of a node  %d disk\n"
        "  %h sharing  %O contiguous  %X reserved cores  %H %I %J %z sockets, cores, threads\n"
        "  %v reservation  %W licenses  %E dependency  %all all of them\n"
        "  %g %G group, %U user id, %o command and %Y expected nodes are not known\n\n"
        "Tasks of an array that wait share a line, but not with -r."},
    OwnVerb{
        "scancel", Verb::kScancel, "Cancel jobs, as scancel does",
        "For example:\n  muster scancel --me --state=PENDING\n\n"
        "Which jobs: numbers (42, 42_5, '42_[1-3]'), -u users, --me your own, -n names, -t "
        "states, -p partitions, -A accounts, -q QOS, -w nodes, -R reservations, -M clusters; "
        "those that fit all of it. Without numbers and -u it cancels your own jobs only\n"
        "How: -s a signal in place of the end (USR1, SIGTERM, 10), to all steps of a batch script "
        "(of another job: to all its programs), -b only to the first process, -f to all, -v "
        "names the jobs, -Q says nothing of numbers that no job has\n"
        "Variables: SCANCEL_USER, SCANCEL_STATE and others of scancel's"},
    OwnVerb{"sacct", Verb::kSacct, "List jobs and their ends, as sacct does",
            "For example:\n  muster sacct -S now-1days -X -o JobID,JobName%20,State,ExitCode\n\n"
            "Which jobs: -j numbers, -u users, -a all users, --me your own, --name names, -s "
            "states, -r partitions, -A accounts, -q QOS, -N nodes, -M clusters, -S from, -E to "
            "(now-2hours, 11/27, 2026-11-27T19:00, 7:20pm, noon). Without -S and -j from today on\n"
            "How: -o columns (-e lists them; NAME%20 is a width, ALL is all of them), -b few "
            "columns, -l many, -n no heading, -p and -P with | between, --delimiter with another. "
            "-X has no effect\n"
            "Variables: SACCT_FORMAT, SLURM_TIME_FORMAT\n\n"
            "One line for each job, without its steps. MaxRSS, TotalCPU, UserCPU and SystemCPU "
            "are those of the latest run, some seconds after its end."},
    OwnVerb{
        "sinfo", Verb::kSinfo, "Show partitions and nodes, as sinfo does",
        "For example:\n  muster sinfo -N -o '%N %t %C %G'\n\n"
        "Which nodes: -p partitions, -n nodes, -t states, -d those that do not answer, -r those "
        "that do, -M clusters\n"
        "How: -o columns by letters, -O by names, -N a line for each node, -s summary, -l more "
        "columns, -R reasons, -e nodes of another size apart, -h no heading, -S order, -i look "
        "again every SECONDS. -a and --local have no effect\n"
        "Variables: SINFO_FORMAT, SINFO_PARTITION, SINFO_SORT, SLURM_TIME_FORMAT\n\n"
        "Letters of -o and -S:\n"
        "  %P partition (*: the default)  %R without *  %a up or down  %l time limit  %L default "
        "limit\n"
        "  %s nodes of a job  %D nodes  %N their names  %n one name  %t %T state\n"
        "  %A %F nodes by state  %C cores by state  %c cores  %m memory  %G GPUs\n"
        "  %f %b features  %E reason  %u %U who gave it  %H when  %all all of them\n"
        "  others of sinfo's (%e %O %z %w %d %p ...) are N/A: they are not known"},
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
constexpr std::array<std::string_view, 5> kWithValue = {"--broker", "--context", "--token-file",
                                                        "--ca-file", "--output"};

}  // namespace

std::span<const OwnVerb> OwnVerbs() { return kVerbs; }

bool TakesNextWord(std::string_view option) {
  if (std::find(kWithValue.begin(), kWithValue.end(), option) != kWithValue.end()) return true;
  // -o, also behind -q in the same word.
  return option.size() > 1 && option[0] == '-' &&
         option.find_first_not_of('q', 1) == option.size() - 1 && option.back() == 'o';
}

char** FindVerb(char** begin, char** end) {
  while (begin < end && (*begin)[0] == '-' && *begin != kEndOfFlags)
    begin += TakesNextWord(*begin) ? 2 : 1;
  return begin < end && *begin != kEndOfFlags ? begin : end;
}

char** OwnWords(char** begin, char** end) {
  char** const at = FindVerb(begin, end);
  if (at == end) return end;
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
