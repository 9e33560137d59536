#include "agents/slurm/memory_words.h"

#include <algorithm>
#include <array>

#include "agents/slurm/fields.h"

namespace muster::slurm {
namespace {

// Slurm 22.05 and 24.11, with cgroups and without them.
constexpr std::array<std::string_view, 5> kSigns = {"oom-kill event", "oom_kill event",
                                                    "exceeded memory limit",
                                                    "Exceeded job memory limit", "OOM Killed"};

bool IsOfMemory(std::string_view line) {
  return line.starts_with("slurmstepd") &&
         std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
           return line.find(sign) != std::string_view::npos;
         });
}

// A line that is there already is left out: this agent, or one before it, has been here. Nothing
// of a user's is read as shell text.
constexpr char kAppend[] = R"sh(
while IFS= read -r file; do
  [ -f "$file" ] || continue
  new=$(printf '%s' "$2" | grep -vxF -e "$(tail -c 65536 -- "$file")") || continue
  printf '%s\n' "$new" >>"$file"
done <"$1"
)sh";

}  // namespace

std::string MemoryWords(std::string_view slurm_output) {
  std::string words;
  for (std::string_view line : Lines(slurm_output)) {
    if (!IsOfMemory(line)) continue;
    words += line;
    words += '\n';
  }
  return words;
}

void HandOnMemoryWords(const std::string& words, const RunPaths& paths, hosts::Host* host) {
  hosts::Command command;
  command.argv = {"/bin/sh", "-c", kAppend, "sh", paths.script_errors(), words};
  host->Run(command).IgnoreError();
}

}  // namespace muster::slurm
