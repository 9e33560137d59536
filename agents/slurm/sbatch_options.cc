#include "agents/slurm/sbatch_options.h"

#include <algorithm>
#include <array>

namespace muster::slurm {
namespace {

using enum SbatchOption::Argument;

// sbatch(1) of Slurm 22.05, asked of sbatch itself; what newer ones add; what Pyxis adds. An option
// that is not here is reported as not understood.
constexpr std::array kOptions = {
    SbatchOption{"account", 'A', kRequired, "SBATCH_ACCOUNT"},
    SbatchOption{"acctg-freq", 0, kRequired, "SBATCH_ACCTG_FREQ"},
    SbatchOption{"array", 'a', kRequired, "SBATCH_ARRAY_INX"},
    SbatchOption{"batch", 0, kRequired, "SBATCH_BATCH"},
    SbatchOption{"bb", 0, kRequired, "SBATCH_BURST_BUFFER"},
    SbatchOption{"bbf", 0, kRequired},
    SbatchOption{"begin", 'b', kRequired},
    SbatchOption{"chdir", 'D', kRequired},
    SbatchOption{"cluster-constraint", 0, kRequired, "SBATCH_CLUSTER_CONSTRAINT"},
    SbatchOption{"clusters", 'M', kRequired, "SBATCH_CLUSTERS"},
    SbatchOption{"comment", 0, kRequired},
    SbatchOption{"constraint", 'C', kRequired, "SBATCH_CONSTRAINT"},
    SbatchOption{"container", 0, kRequired, "SBATCH_CONTAINER"},
    SbatchOption{"container-id", 0, kRequired, "SBATCH_CONTAINER_ID"},
    SbatchOption{"contiguous", 0, kNone},
    SbatchOption{"core-spec", 'S', kRequired, "SBATCH_CORE_SPEC"},
    SbatchOption{"cores-per-socket", 0, kRequired},
    SbatchOption{"cpu-freq", 0, kRequired, "SBATCH_CPU_FREQ_REQ"},
    SbatchOption{"cpus-per-gpu", 0, kRequired, "SBATCH_CPUS_PER_GPU"},
    SbatchOption{"cpus-per-task", 'c', kRequired},
    SbatchOption{"deadline", 0, kRequired},
    SbatchOption{"delay-boot", 0, kRequired, "SBATCH_DELAY_BOOT"},
    SbatchOption{"dependency", 'd', kRequired},
    SbatchOption{"distribution", 'm', kRequired, "SBATCH_DISTRIBUTION"},
    SbatchOption{"error", 'e', kRequired, "SBATCH_ERROR"},
    SbatchOption{"exclude", 'x', kRequired},
    SbatchOption{"exclusive", 0, kOptional, "SBATCH_EXCLUSIVE"},
    SbatchOption{"export", 0, kRequired, "SBATCH_EXPORT"},
    SbatchOption{"export-file", 0, kRequired},
    SbatchOption{"extra", 0, kRequired},
    SbatchOption{"extra-node-info", 'B', kRequired},
    SbatchOption{"get-user-env", 0, kOptional, "SBATCH_GET_USER_ENV"},
    SbatchOption{"gid", 0, kRequired},
    SbatchOption{"gpu-bind", 0, kRequired, "SBATCH_GPU_BIND"},
    SbatchOption{"gpu-freq", 0, kRequired, "SBATCH_GPU_FREQ"},
    SbatchOption{"gpus", 'G', kRequired, "SBATCH_GPUS"},
    SbatchOption{"gpus-per-node", 0, kRequired, "SBATCH_GPUS_PER_NODE"},
    SbatchOption{"gpus-per-socket", 0, kRequired, "SBATCH_GPUS_PER_SOCKET"},
    SbatchOption{"gpus-per-task", 0, kRequired, "SBATCH_GPUS_PER_TASK"},
    SbatchOption{"gres", 0, kRequired, "SBATCH_GRES"},
    SbatchOption{"gres-flags", 0, kRequired, "SBATCH_GRES_FLAGS"},
    SbatchOption{"help", 'h', kNone},
    SbatchOption{"hint", 0, kRequired, "SBATCH_HINT"},
    SbatchOption{"hold", 'H', kNone},
    SbatchOption{"ignore-pbs", 0, kNone, "SBATCH_IGNORE_PBS"},
    SbatchOption{"input", 'i', kRequired, "SBATCH_INPUT"},
    SbatchOption{"job-name", 'J', kRequired, "SBATCH_JOB_NAME"},
    SbatchOption{"kill-on-invalid-dep", 0, kRequired},
    SbatchOption{"licenses", 'L', kRequired},
    SbatchOption{"mail-type", 0, kRequired},
    SbatchOption{"mail-user", 0, kRequired},
    SbatchOption{"mcs-label", 0, kRequired},
    SbatchOption{"mem", 0, kRequired, "SBATCH_MEM_PER_NODE"},
    SbatchOption{"mem-bind", 0, kRequired, "SBATCH_MEM_BIND"},
    SbatchOption{"mem-per-cpu", 0, kRequired, "SBATCH_MEM_PER_CPU"},
    SbatchOption{"mem-per-gpu", 0, kRequired, "SBATCH_MEM_PER_GPU"},
    SbatchOption{"mincpus", 0, kRequired},
    SbatchOption{"network", 0, kRequired, "SBATCH_NETWORK"},
    SbatchOption{"nice", 0, kOptional},
    SbatchOption{"no-kill", 'k', kOptional, "SBATCH_NO_KILL"},
    SbatchOption{"no-requeue", 0, kNone, "SBATCH_NO_REQUEUE"},
    SbatchOption{"nodefile", 'F', kRequired},
    SbatchOption{"nodelist", 'w', kRequired},
    SbatchOption{"nodes", 'N', kRequired},
    SbatchOption{"ntasks", 'n', kRequired, "", "tasks"},
    SbatchOption{"ntasks-per-core", 0, kRequired},
    SbatchOption{"ntasks-per-gpu", 0, kRequired},
    SbatchOption{"ntasks-per-node", 0, kRequired, "", "tasks-per-node"},
    SbatchOption{"ntasks-per-socket", 0, kRequired},
    SbatchOption{"oom-kill-step", 0, kOptional, "SBATCH_OOM_KILL_STEP"},
    SbatchOption{"open-mode", 0, kRequired, "SBATCH_OPEN_MODE"},
    SbatchOption{"output", 'o', kRequired, "SBATCH_OUTPUT"},
    SbatchOption{"overcommit", 'O', kNone, "SBATCH_OVERCOMMIT"},
    SbatchOption{"oversubscribe", 's', kNone},
    SbatchOption{"parsable", 0, kNone},
    SbatchOption{"partition", 'p', kRequired, "SBATCH_PARTITION"},
    SbatchOption{"power", 0, kRequired, "SBATCH_POWER"},
    SbatchOption{"prefer", 0, kRequired},
    SbatchOption{"priority", 0, kRequired},
    SbatchOption{"profile", 0, kRequired, "SBATCH_PROFILE"},
    SbatchOption{"propagate", 0, kOptional},
    SbatchOption{"qos", 'q', kRequired, "SBATCH_QOS"},
    SbatchOption{"quiet", 'Q', kNone},
    SbatchOption{"reboot", 0, kNone},
    SbatchOption{"requeue", 0, kNone, "SBATCH_REQUEUE"},
    SbatchOption{"reservation", 0, kRequired, "SBATCH_RESERVATION"},
    SbatchOption{"resv-ports", 0, kOptional},
    SbatchOption{"segment", 0, kRequired},
    SbatchOption{"signal", 0, kRequired, "SBATCH_SIGNAL"},
    SbatchOption{"sockets-per-node", 0, kRequired},
    SbatchOption{"spread-job", 0, kNone, "SBATCH_SPREAD_JOB"},
    SbatchOption{"stepmgr", 0, kNone},
    SbatchOption{"switches", 0, kRequired, "SBATCH_REQ_SWITCH"},
    SbatchOption{"test-only", 0, kNone},
    SbatchOption{"thread-spec", 0, kRequired, "SBATCH_THREAD_SPEC"},
    SbatchOption{"threads-per-core", 0, kRequired, "SBATCH_THREADS_PER_CORE"},
    SbatchOption{"time", 't', kRequired, "SBATCH_TIMELIMIT"},
    SbatchOption{"time-min", 0, kRequired},
    SbatchOption{"tmp", 0, kRequired},
    SbatchOption{"tres-bind", 0, kRequired},
    SbatchOption{"tres-per-task", 0, kRequired},
    SbatchOption{"uid", 0, kRequired},
    SbatchOption{"usage", 0, kNone},
    SbatchOption{"use-min-nodes", 0, kNone, "SBATCH_USE_MIN_NODES"},
    SbatchOption{"verbose", 'v', kNone, "SBATCH_DEBUG"},
    SbatchOption{"version", 'V', kNone},
    SbatchOption{"wait", 'W', kNone, "SBATCH_WAIT"},
    SbatchOption{"wait-all-nodes", 0, kRequired, "SBATCH_WAIT_ALL_NODES"},
    SbatchOption{"wckey", 0, kRequired, "SBATCH_WCKEY"},
    SbatchOption{"wrap", 0, kRequired},
    // Pyxis.
    SbatchOption{"container-entrypoint", 0, kNone, "PYXIS_CONTAINER_ENTRYPOINT"},
    SbatchOption{"container-env", 0, kRequired, "PYXIS_CONTAINER_ENV"},
    SbatchOption{"container-image", 0, kRequired, "PYXIS_CONTAINER_IMAGE"},
    SbatchOption{"container-mount-home", 0, kNone, "PYXIS_CONTAINER_MOUNT_HOME"},
    SbatchOption{"container-mounts", 0, kRequired, "PYXIS_CONTAINER_MOUNTS"},
    SbatchOption{"container-name", 0, kRequired, "PYXIS_CONTAINER_NAME"},
    SbatchOption{"container-readonly", 0, kNone, "PYXIS_CONTAINER_READONLY"},
    SbatchOption{"container-remap-root", 0, kNone, "PYXIS_CONTAINER_REMAP_ROOT"},
    SbatchOption{"container-save", 0, kRequired, "PYXIS_CONTAINER_SAVE"},
    SbatchOption{"container-workdir", 0, kRequired, "PYXIS_CONTAINER_WORKDIR"},
    SbatchOption{"container-writable", 0, kNone, "PYXIS_CONTAINER_WRITABLE"},
    SbatchOption{"no-container-entrypoint", 0, kNone},
    SbatchOption{"no-container-mount-home", 0, kNone},
    SbatchOption{"no-container-remap-root", 0, kNone},
};

}  // namespace

const SbatchOption* FindSbatchOption(std::string_view name,
                                     std::vector<std::string_view>* candidates) {
  const SbatchOption* found = nullptr;
  for (const SbatchOption& option : kOptions) {
    if (name.empty()) break;
    if (option.name == name || option.other_name == name) return &option;
    if (!option.name.starts_with(name) && !option.other_name.starts_with(name)) continue;
    candidates->push_back(option.name);
    found = &option;
  }
  return candidates->size() == 1 ? found : nullptr;
}

const SbatchOption* FindSbatchOption(char letter) {
  const auto found = std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& option) {
    return letter != 0 && option.letter == letter;
  });
  return found == kOptions.end() ? nullptr : &*found;
}

const SbatchOption* FindSbatchVariable(std::string_view variable) {
  const auto found = std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& option) {
    return !variable.empty() && option.variable == variable;
  });
  return found == kOptions.end() ? nullptr : &*found;
}

}  // namespace muster::slurm
