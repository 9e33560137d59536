#include "clients/cli/slurm/sbatch_help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "clients/cpp/slurm/sbatch_job.h"
#include "clients/cpp/slurm/sbatch_options.h"

namespace muster::cli {
namespace {

using client::slurm::Option;
using client::slurm::WhyRefused;

constexpr size_t kTextColumn = 34;
constexpr size_t kUsageWidth = 100;

// The groups, in their order.
enum class OptionGroup { kJob, kSize, kFiles, kContainer, kPlace, kAllocation, kCommand };
constexpr std::array<std::string_view, 7> kHelpHeadings = {
    "The job:",
    "What it needs:",
    "Its files and variables:",
    "Its container, on Slurm clusters with Pyxis:",
    "Where and when it runs:",
    "Passed to Slurm unchanged, the job runs on Slurm only:",
    "The command itself:"};

struct HelpRow {
  std::string_view name;
  OptionGroup group;
  std::string_view argument;  // empty: it has none
  std::string_view text;
};
constexpr std::array kHelpRows = {
    HelpRow{"account", OptionGroup::kPlace, "NAME", "the account that pays"},
    HelpRow{"acctg-freq", OptionGroup::kAllocation, "LIST", "how often usage is sampled"},
    HelpRow{"array", OptionGroup::kJob, "INDEXES", "a job for each task: 1,5-9:2, 1-100%4"},
    HelpRow{"batch", OptionGroup::kAllocation, "FEATURES", "features of the script's own node"},
    HelpRow{"bb", OptionGroup::kAllocation, "SPEC", "a burst buffer"},
    HelpRow{"bbf", OptionGroup::kAllocation, "FILE", "a burst buffer, from a file"},
    HelpRow{"begin", OptionGroup::kPlace, "TIME", "not before this time"},
    HelpRow{"chdir", OptionGroup::kFiles, "DIRECTORY",
            "the directory to start in; default: this one"},
    HelpRow{"cluster-constraint", OptionGroup::kAllocation, "LIST", "features of clusters"},
    HelpRow{"clusters", OptionGroup::kPlace, "NAMES", "Muster's clusters, any of them"},
    HelpRow{"comment", OptionGroup::kJob, "TEXT", "a comment"},
    HelpRow{"constraint", OptionGroup::kPlace, "LIST", "features that the nodes must have"},
    HelpRow{"container", OptionGroup::kAllocation, "PATH", "an OCI bundle"},
    HelpRow{"container-entrypoint", OptionGroup::kContainer, "", "run the image's entrypoint"},
    HelpRow{"container-env", OptionGroup::kContainer, "NAMES",
            "variables that win over the image's"},
    HelpRow{"container-id", OptionGroup::kAllocation, "ID", "an OCI container"},
    HelpRow{"container-image", OptionGroup::kContainer, "IMAGE", "the image"},
    HelpRow{"container-mount-home", OptionGroup::kContainer, "", "mount the home directory"},
    HelpRow{"container-mounts", OptionGroup::kContainer, "LIST", "directories to mount"},
    HelpRow{"container-name", OptionGroup::kContainer, "NAME", "a container that is kept"},
    HelpRow{"container-readonly", OptionGroup::kContainer, "", "a root that cannot be written to"},
    HelpRow{"container-remap-root", OptionGroup::kContainer, "", "be root inside"},
    HelpRow{"container-save", OptionGroup::kContainer, "PATH", "save the container"},
    HelpRow{"container-workdir", OptionGroup::kContainer, "PATH", "the directory to start in"},
    HelpRow{"container-writable", OptionGroup::kContainer, "", "a root that can be written to"},
    HelpRow{"contiguous", OptionGroup::kAllocation, "", "adjacent nodes"},
    HelpRow{"core-spec", OptionGroup::kAllocation, "COUNT", "cores kept for the system"},
    HelpRow{"cores-per-socket", OptionGroup::kAllocation, "COUNT",
            "nodes with so many cores in a socket"},
    HelpRow{"cpu-freq", OptionGroup::kAllocation, "RANGE", "frequency of the cores"},
    HelpRow{"cpus-per-gpu", OptionGroup::kSize, "COUNT", "cores for each GPU"},
    HelpRow{"cpus-per-task", OptionGroup::kSize, "COUNT", "cores for each task; default: 1"},
    HelpRow{"deadline", OptionGroup::kPlace, "TIME", "give it up if it cannot end by this time"},
    HelpRow{"delay-boot", OptionGroup::kAllocation, "MINUTES",
            "how long to wait before nodes are rebooted"},
    HelpRow{"dependency", OptionGroup::kPlace, "LIST",
            "after other jobs, by Muster's numbers: afterok:42"},
    HelpRow{"distribution", OptionGroup::kAllocation, "METHOD",
            "how tasks are distributed over nodes"},
    HelpRow{"error", OptionGroup::kFiles, "FILE", "standard error, on Slurm"},
    HelpRow{"exclude", OptionGroup::kPlace, "NODES", "nodes to keep away from"},
    HelpRow{"exclusive", OptionGroup::kSize, "[=user|mcs]", "whole nodes"},
    HelpRow{"export", OptionGroup::kFiles, "LIST", "variables of your shell, or NAME=VALUE"},
    HelpRow{"export-file", OptionGroup::kFiles, "FILE", "variables, from a file"},
    HelpRow{"extra", OptionGroup::kAllocation, "TEXT", "a text for the site"},
    HelpRow{"extra-node-info", OptionGroup::kAllocation, "S[:C[:T]]",
            "sockets, cores and threads of nodes"},
    HelpRow{"get-user-env", OptionGroup::kFiles, "[=SECONDS]", "the variables that a login sets"},
    HelpRow{"gid", OptionGroup::kJob, "GROUP", "the group to run as"},
    HelpRow{"gpu-bind", OptionGroup::kAllocation, "RULE", "which task sees which GPU"},
    HelpRow{"gpu-freq", OptionGroup::kAllocation, "SPEC", "frequency of the GPUs"},
    HelpRow{"gpus", OptionGroup::kSize, "[TYPE:]COUNT", "GPUs of the whole job"},
    HelpRow{"gpus-per-node", OptionGroup::kSize, "[TYPE:]COUNT", "GPUs of each node"},
    HelpRow{"gpus-per-socket", OptionGroup::kSize, "[TYPE:]COUNT", "GPUs of each socket"},
    HelpRow{"gpus-per-task", OptionGroup::kSize, "[TYPE:]COUNT", "GPUs of each task"},
    HelpRow{"gres", OptionGroup::kSize, "LIST", "generic resources of each node: gpu:h100:4"},
    HelpRow{"gres-flags", OptionGroup::kAllocation, "FLAGS", "how generic resources are chosen"},
    HelpRow{"help", OptionGroup::kCommand, "", "this text"},
    HelpRow{"hint", OptionGroup::kAllocation, "TYPE", "how cores are used: nomultithread"},
    HelpRow{"hold", OptionGroup::kJob, "", "hold it until muster release"},
    HelpRow{"ignore-pbs", OptionGroup::kCommand, "", "ignore #PBS and #BSUB lines"},
    HelpRow{"input", OptionGroup::kFiles, "FILE", "standard input, on Slurm"},
    HelpRow{"job-name", OptionGroup::kJob, "NAME", "its name; default: the script's"},
    HelpRow{"kill-on-invalid-dep", OptionGroup::kAllocation, "yes|no",
            "end it if its dependency can never be fulfilled"},
    HelpRow{"licenses", OptionGroup::kPlace, "LIST", "licenses"},
    HelpRow{"mail-type", OptionGroup::kJob, "LIST", "what Slurm sends mail about: END,FAIL"},
    HelpRow{"mail-user", OptionGroup::kJob, "ADDRESS", "to whom it goes"},
    HelpRow{"mcs-label", OptionGroup::kAllocation, "LABEL", "a security label"},
    HelpRow{"mem", OptionGroup::kSize, "SIZE", "memory of each node; a plain number is megabytes"},
    HelpRow{"mem-bind", OptionGroup::kAllocation, "RULE", "which memory a task uses"},
    HelpRow{"mem-per-cpu", OptionGroup::kSize, "SIZE", "memory for each core"},
    HelpRow{"mem-per-gpu", OptionGroup::kSize, "SIZE", "memory for each GPU"},
    HelpRow{"mincpus", OptionGroup::kAllocation, "COUNT", "nodes with at least so many cores"},
    HelpRow{"network", OptionGroup::kAllocation, "SPEC", "the network"},
    HelpRow{"nice", OptionGroup::kPlace, "[=COUNT]", "a lower priority"},
    HelpRow{"no-container-entrypoint", OptionGroup::kContainer, "", "leave the entrypoint out"},
    HelpRow{"no-container-mount-home", OptionGroup::kContainer, "", "leave the home directory out"},
    HelpRow{"no-container-remap-root", OptionGroup::kContainer, "", "be yourself inside"},
    HelpRow{"no-kill", OptionGroup::kAllocation, "[=off]", "go on without a node that fails"},
    HelpRow{"no-requeue", OptionGroup::kJob, "", "it gets no other run after a fault"},
    HelpRow{"nodefile", OptionGroup::kPlace, "FILE", "the nodes, from a file"},
    HelpRow{"nodelist", OptionGroup::kPlace, "NODES", "nodes that it must have"},
    HelpRow{"nodes", OptionGroup::kSize, "MIN[-MAX]", "how many nodes"},
    HelpRow{"ntasks", OptionGroup::kSize, "COUNT", "how many tasks"},
    HelpRow{"ntasks-per-core", OptionGroup::kAllocation, "COUNT",
            "maximum number of tasks on a core"},
    HelpRow{"ntasks-per-gpu", OptionGroup::kAllocation, "COUNT", "tasks for each GPU"},
    HelpRow{"ntasks-per-node", OptionGroup::kSize, "COUNT", "tasks on each node"},
    HelpRow{"ntasks-per-socket", OptionGroup::kAllocation, "COUNT",
            "maximum number of tasks on a socket"},
    HelpRow{"oom-kill-step", OptionGroup::kAllocation, "[=0|1]", "what ends when memory runs out"},
    HelpRow{"open-mode", OptionGroup::kFiles, "append|truncate",
            "append to existing output, or truncate it"},
    HelpRow{"output", OptionGroup::kFiles, "FILE",
            "standard output, on Slurm; default: slurm-%j.out"},
    HelpRow{"overcommit", OptionGroup::kAllocation, "", "several tasks on a core"},
    HelpRow{"oversubscribe", OptionGroup::kAllocation, "", "share its resources with other jobs"},
    HelpRow{"parsable", OptionGroup::kCommand, "", "print the number alone"},
    HelpRow{"partition", OptionGroup::kPlace, "NAMES", "the partition, any kind of cluster's pool"},
    HelpRow{"power", OptionGroup::kAllocation, "FLAGS", "power management"},
    HelpRow{"prefer", OptionGroup::kAllocation, "LIST", "features that nodes should have"},
    HelpRow{"priority", OptionGroup::kPlace, "VALUE", "its priority"},
    HelpRow{"profile", OptionGroup::kAllocation, "LIST", "what is profiled"},
    HelpRow{"propagate", OptionGroup::kFiles, "[=LIMITS]", "limits of your shell"},
    HelpRow{"qos", OptionGroup::kPlace, "NAME", "the quality of service"},
    HelpRow{"quiet", OptionGroup::kCommand, "", "no remarks, no warnings"},
    HelpRow{"reboot", OptionGroup::kAllocation, "", "reboot the nodes before it starts"},
    HelpRow{"requeue", OptionGroup::kJob, "", "Slurm may start it again"},
    HelpRow{"reservation", OptionGroup::kPlace, "NAMES", "the reservation"},
    HelpRow{"resv-ports", OptionGroup::kAllocation, "[=COUNT]", "ports kept for it"},
    HelpRow{"segment", OptionGroup::kAllocation, "COUNT", "how nodes are grouped in blocks"},
    HelpRow{"signal", OptionGroup::kJob, "[B:]SIGNAL[@SECONDS]",
            "a signal before its time is over"},
    HelpRow{"sockets-per-node", OptionGroup::kAllocation, "COUNT", "nodes with so many sockets"},
    HelpRow{"spread-job", OptionGroup::kAllocation, "", "spread it over many nodes"},
    HelpRow{"stepmgr", OptionGroup::kAllocation, "", "a step manager of its own"},
    HelpRow{"switches", OptionGroup::kAllocation, "COUNT[@TIME]",
            "most switches between its nodes"},
    HelpRow{"test-only", OptionGroup::kCommand, "",
            "say where and when it would start, as muster plan"},
    HelpRow{"thread-spec", OptionGroup::kAllocation, "COUNT", "threads kept for the system"},
    HelpRow{"threads-per-core", OptionGroup::kAllocation, "COUNT",
            "threads of a core that it uses"},
    HelpRow{"time", OptionGroup::kSize, "TIME", "its time limit: minutes, H:MM:SS or D-HH:MM:SS"},
    HelpRow{"time-min", OptionGroup::kAllocation, "TIME", "the least time limit that will do"},
    HelpRow{"tmp", OptionGroup::kAllocation, "SIZE", "space for temporary files on each node"},
    HelpRow{"tres-bind", OptionGroup::kAllocation, "RULE", "which task has which resource"},
    HelpRow{"tres-per-task", OptionGroup::kAllocation, "LIST", "resources of each task"},
    HelpRow{"uid", OptionGroup::kJob, "USER", "the user to run as"},
    HelpRow{"usage", OptionGroup::kCommand, "", "the options in brief"},
    HelpRow{"use-min-nodes", OptionGroup::kAllocation, "", "as few nodes as possible"},
    HelpRow{"verbose", OptionGroup::kCommand, "", "has no effect"},
    HelpRow{"version", OptionGroup::kCommand, "", "print muster's version"},
    HelpRow{"wait", OptionGroup::kCommand, "", "wait for the end; exit as the script"},
    HelpRow{"wait-all-nodes", OptionGroup::kAllocation, "0|1", "start when all nodes are ready"},
    HelpRow{"wckey", OptionGroup::kAllocation, "NAME", "a key for accounting"},
    HelpRow{"wrap", OptionGroup::kCommand, "COMMAND", "a command in place of a script"},
};

const HelpRow* HelpRowOf(std::string_view option) {
  const auto* found = std::find_if(kHelpRows.begin(), kHelpRows.end(),
                                   [&](const HelpRow& row) { return row.name == option; });
  return found == kHelpRows.end() ? nullptr : found;
}

// "-t, --time=TIME".
std::string OptionText(const Option& option) {
  const HelpRow* row = HelpRowOf(option.name);
  const std::string_view argument = row == nullptr ? "" : row->argument;
  const std::string letter =
      option.letter == 0 ? std::string("    ") : fmt::format("-{}, ", option.letter);
  const bool is_required = option.argument == Option::Argument::kRequired;
  return fmt::format("{}--{}{}{}", letter, option.name, is_required ? "=" : "", argument);
}

std::string HelpLine(const Option& option, std::string_view text) {
  const std::string name = "  " + OptionText(option);
  // A name that leaves no room has its text on the next line.
  const bool fits = name.size() + 2 <= kTextColumn;
  return fmt::format("{}{}{}{}\n", name, fits ? "" : "\n",
                     std::string(kTextColumn - (fits ? name.size() : 0), ' '), text);
}

}  // namespace

std::string_view SbatchHelpOf(std::string_view option) {
  const HelpRow* row = HelpRowOf(option);
  return row == nullptr ? std::string_view() : row->text;
}

std::string SbatchHelp() {
  std::map<OptionGroup, std::string> groups;
  std::string refused;
  for (const Option& option : client::slurm::SbatchOptions()) {
    const HelpRow* row = HelpRowOf(option.name);
    if (row == nullptr) continue;
    const std::string why = WhyRefused(option);
    if (why.empty()) {
      groups[row->group] += HelpLine(option, row->text);
    } else {
      refused += HelpLine(option, why);
    }
  }
  std::string help;
  for (const auto& [group, lines] : groups) {
    help += fmt::format("{}\n{}\n", kHelpHeadings[static_cast<size_t>(group)], lines);
  }
  return help + "Refused, and what to do:\n" + refused;
}

std::string SbatchUsage() {
  constexpr std::string_view kBegin = "Usage: muster sbatch";
  const std::string indent(kBegin.size(), ' ');
  std::string usage;
  std::string line(kBegin);
  const auto add = [&](const std::string& word) {
    if (line.size() + 1 + word.size() > kUsageWidth) {
      usage += line + "\n";
      line = indent;
    }
    line += " " + word;
  };
  for (const Option& option : client::slurm::SbatchOptions()) {
    if (!WhyRefused(option).empty()) continue;
    const std::string name = OptionText(option);
    add(fmt::format("[{}]", name.substr(name.find("--"))));
  }
  add("SCRIPT");
  add("[ARGUMENT...]");
  return usage + line + "\n";
}

}  // namespace muster::cli
