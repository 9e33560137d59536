#include "clients/cpp/slurm/sbatch_options.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::client::slurm {
namespace {

using enum Option::Argument;

// sbatch(1) of Slurm 22.05, read from sbatch itself; what newer ones add; what Pyxis adds. An
// option that is not here is reported as not understood.
constexpr std::array kOptions = {
    Option{"account", 'A', kRequired, "SBATCH_ACCOUNT"},
    Option{"acctg-freq", 0, kRequired, "SBATCH_ACCTG_FREQ"},
    Option{"array", 'a', kRequired, "SBATCH_ARRAY_INX"},
    Option{"batch", 0, kRequired, "SBATCH_BATCH"},
    Option{"bb", 0, kRequired, "SBATCH_BURST_BUFFER"},
    Option{"bbf", 0, kRequired},
    Option{"begin", 'b', kRequired},
    Option{"chdir", 'D', kRequired},
    Option{"cluster-constraint", 0, kRequired, "SBATCH_CLUSTER_CONSTRAINT"},
    Option{"clusters", 'M', kRequired, "SBATCH_CLUSTERS", "cluster"},
    Option{"comment", 0, kRequired},
    Option{"constraint", 'C', kRequired, "SBATCH_CONSTRAINT"},
    Option{"container", 0, kRequired, "SBATCH_CONTAINER"},
    Option{"container-id", 0, kRequired, "SBATCH_CONTAINER_ID"},
    Option{"contiguous", 0, kNone},
    Option{"core-spec", 'S', kRequired, "SBATCH_CORE_SPEC"},
    Option{"cores-per-socket", 0, kRequired},
    Option{"cpu-freq", 0, kRequired, "SBATCH_CPU_FREQ_REQ"},
    Option{"cpus-per-gpu", 0, kRequired, "SBATCH_CPUS_PER_GPU"},
    Option{"cpus-per-task", 'c', kRequired},
    Option{"deadline", 0, kRequired},
    Option{"delay-boot", 0, kRequired, "SBATCH_DELAY_BOOT"},
    Option{"dependency", 'd', kRequired},
    Option{"distribution", 'm', kRequired, "SBATCH_DISTRIBUTION"},
    Option{"error", 'e', kRequired, "SBATCH_ERROR"},
    Option{"exclude", 'x', kRequired},
    Option{"exclusive", 0, kOptional, "SBATCH_EXCLUSIVE"},
    Option{"export", 0, kRequired, "SBATCH_EXPORT"},
    Option{"export-file", 0, kRequired},
    Option{"extra", 0, kRequired},
    Option{"extra-node-info", 'B', kRequired},
    Option{"get-user-env", 0, kOptional, "SBATCH_GET_USER_ENV"},
    Option{"gid", 0, kRequired},
    Option{"gpu-bind", 0, kRequired, "SBATCH_GPU_BIND"},
    Option{"gpu-freq", 0, kRequired, "SBATCH_GPU_FREQ"},
    Option{"gpus", 'G', kRequired, "SBATCH_GPUS"},
    Option{"gpus-per-node", 0, kRequired, "SBATCH_GPUS_PER_NODE"},
    Option{"gpus-per-socket", 0, kRequired, "SBATCH_GPUS_PER_SOCKET"},
    Option{"gpus-per-task", 0, kRequired, "SBATCH_GPUS_PER_TASK"},
    Option{"gres", 0, kRequired, "SBATCH_GRES"},
    Option{"gres-flags", 0, kRequired, "SBATCH_GRES_FLAGS"},
    Option{"help", 'h', kNone},
    Option{"hint", 0, kRequired, "SBATCH_HINT"},
    Option{"hold", 'H', kNone},
    Option{"ignore-pbs", 0, kNone, "SBATCH_IGNORE_PBS"},
    Option{"input", 'i', kRequired, "SBATCH_INPUT"},
    Option{"job-name", 'J', kRequired, "SBATCH_JOB_NAME"},
    Option{"kill-on-invalid-dep", 0, kRequired},
    Option{"licenses", 'L', kRequired},
    Option{"mail-type", 0, kRequired},
    Option{"mail-user", 0, kRequired},
    Option{"mcs-label", 0, kRequired},
    Option{"mem", 0, kRequired, "SBATCH_MEM_PER_NODE"},
    Option{"mem-bind", 0, kRequired, "SBATCH_MEM_BIND"},
    Option{"mem-per-cpu", 0, kRequired, "SBATCH_MEM_PER_CPU"},
    Option{"mem-per-gpu", 0, kRequired, "SBATCH_MEM_PER_GPU"},
    Option{"mincpus", 0, kRequired},
    Option{"network", 0, kRequired, "SBATCH_NETWORK"},
    Option{"nice", 0, kOptional},
    Option{"no-kill", 'k', kOptional, "SBATCH_NO_KILL"},
    Option{"no-requeue", 0, kNone, "SBATCH_NO_REQUEUE"},
    Option{"nodefile", 'F', kRequired},
    Option{"nodelist", 'w', kRequired},
    Option{"nodes", 'N', kRequired},
    Option{"ntasks", 'n', kRequired},
    Option{"ntasks-per-core", 0, kRequired},
    Option{"ntasks-per-gpu", 0, kRequired},
    Option{"ntasks-per-node", 0, kRequired, "", "tasks-per-node"},
    Option{"ntasks-per-socket", 0, kRequired},
    Option{"oom-kill-step", 0, kOptional, "SBATCH_OOM_KILL_STEP"},
    Option{"open-mode", 0, kRequired, "SBATCH_OPEN_MODE"},
    Option{"output", 'o', kRequired, "SBATCH_OUTPUT"},
    Option{"overcommit", 'O', kNone, "SBATCH_OVERCOMMIT"},
    Option{"oversubscribe", 's', kNone},
    Option{"parsable", 0, kNone},
    Option{"partition", 'p', kRequired, "SBATCH_PARTITION"},
    Option{"power", 0, kRequired, "SBATCH_POWER"},
    Option{"prefer", 0, kRequired},
    Option{"priority", 0, kRequired},
    Option{"profile", 0, kRequired, "SBATCH_PROFILE"},
    Option{"propagate", 0, kOptional},
    Option{"qos", 'q', kRequired, "SBATCH_QOS"},
    Option{"quiet", 'Q', kNone},
    Option{"reboot", 0, kNone},
    Option{"requeue", 0, kNone, "SBATCH_REQUEUE"},
    Option{"reservation", 0, kRequired, "SBATCH_RESERVATION"},
    Option{"resv-ports", 0, kOptional},
    Option{"segment", 0, kRequired},
    Option{"signal", 0, kRequired, "SBATCH_SIGNAL"},
    Option{"sockets-per-node", 0, kRequired},
    Option{"spread-job", 0, kNone, "SBATCH_SPREAD_JOB"},
    Option{"stepmgr", 0, kNone},
    Option{"switches", 0, kRequired, "SBATCH_REQ_SWITCH"},
    Option{"test-only", 0, kNone},
    Option{"thread-spec", 0, kRequired, "SBATCH_THREAD_SPEC"},
    Option{"threads-per-core", 0, kRequired, "SBATCH_THREADS_PER_CORE"},
    Option{"time", 't', kRequired, "SBATCH_TIMELIMIT"},
    Option{"time-min", 0, kRequired},
    Option{"tmp", 0, kRequired},
    Option{"tres-bind", 0, kRequired},
    Option{"tres-per-task", 0, kRequired},
    Option{"uid", 0, kRequired},
    Option{"usage", 0, kNone},
    Option{"use-min-nodes", 0, kNone, "SBATCH_USE_MIN_NODES"},
    Option{"verbose", 'v', kNone, "SBATCH_DEBUG"},
    Option{"version", 'V', kNone},
    Option{"wait", 'W', kNone, "SBATCH_WAIT"},
    Option{"wait-all-nodes", 0, kRequired, "SBATCH_WAIT_ALL_NODES"},
    Option{"wckey", 0, kRequired, "SBATCH_WCKEY"},
    Option{"wrap", 0, kRequired},
    // Pyxis.
    Option{"container-entrypoint", 0, kNone, "PYXIS_CONTAINER_ENTRYPOINT"},
    Option{"container-env", 0, kRequired, "PYXIS_CONTAINER_ENV"},
    Option{"container-image", 0, kRequired, "PYXIS_CONTAINER_IMAGE"},
    Option{"container-mount-home", 0, kNone, "PYXIS_CONTAINER_MOUNT_HOME"},
    Option{"container-mounts", 0, kRequired, "PYXIS_CONTAINER_MOUNTS"},
    Option{"container-name", 0, kRequired, "PYXIS_CONTAINER_NAME"},
    Option{"container-readonly", 0, kNone, "PYXIS_CONTAINER_READONLY"},
    Option{"container-remap-root", 0, kNone, "PYXIS_CONTAINER_REMAP_ROOT"},
    Option{"container-save", 0, kRequired, "PYXIS_CONTAINER_SAVE"},
    Option{"container-workdir", 0, kRequired, "PYXIS_CONTAINER_WORKDIR"},
    Option{"container-writable", 0, kNone, "PYXIS_CONTAINER_WRITABLE"},
    Option{"no-container-entrypoint", 0, kNone},
    Option{"no-container-mount-home", 0, kNone},
    Option{"no-container-remap-root", 0, kNone},
};

// Options that a second variable sets, too.
constexpr std::pair<std::string_view, std::string_view> kOtherVariables[] = {
    {"SLURM_CLUSTERS", "SBATCH_CLUSTERS"}, {"SLURM_HINT", "SBATCH_HINT"}};

}  // namespace

OptionTable SbatchOptions() { return kOptions; }

const Option* FindSbatchVariable(std::string_view variable) {
  for (const auto& [other, of_sbatch] : kOtherVariables) {
    if (variable == other) variable = of_sbatch;
  }
  const auto found = std::find_if(kOptions.begin(), kOptions.end(), [&](const auto& option) {
    return !variable.empty() && option.variable == variable;
  });
  return found == kOptions.end() ? nullptr : &*found;
}

}  // namespace muster::client::slurm
