// Slurm calls these hooks, in the places where Pyxis has its own. The hooks of a task run in the
// task's own process, which Slurm forks; so tasks of a node share data in shared memory.

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/pyxis/container.h"
#include "tests/support/pyxis/enroot_command.h"
#include "tests/support/pyxis/options.h"
#include "tests/support/pyxis/settings.h"
#include "tests/support/pyxis/spank.h"

#define MUSTER_HOOK extern "C" __attribute__((visibility("default")))

// Slurm looks for these by name.
MUSTER_HOOK const char plugin_name[];
MUSTER_HOOK const char plugin_type[];
MUSTER_HOOK const unsigned int plugin_version;
MUSTER_HOOK const unsigned int spank_plugin_version;
SPANK_PLUGIN(pyxis, 1)

namespace muster::pyxis {
namespace {

// Shared by the tasks of a step on a node.
struct Shared {
  pthread_mutex_t mutex;
  bool tried = false;    // a task has tried to start the container
  pid_t container = -1;  // its stopped first process
  std::atomic<uint32_t> joined = 0;
  std::atomic<uint32_t> ended = 0;
};

// One step on one node.
struct Step {
  User user;
  uint32_t job_id = 0;
  uint32_t step_id = 0;
  uint32_t local_tasks = 0;
  uint32_t all_tasks = 0;
  std::vector<std::string> environment;
  std::string runtime;  // the user's directory of this node
  std::string name;     // the container's
  bool exists = false;  // under that name, from an earlier step
  bool temporary = true;
  bool broken = false;  // said already why
  Shared* shared = nullptr;
};

// SPANK gives its hooks nothing of their own to carry along.
std::optional<Settings>& TheSettings() {
  static std::optional<Settings> settings;
  return settings;
}

std::unique_ptr<Step>& TheStep() {
  static std::unique_ptr<Step> step;
  return step;
}

std::optional<std::string> JobVariable(spank_t spank, const std::string& name) {
  // The value is longer than anything that Linux passes on by exec.
  std::string value(128 * 1024, '\0');
  if (spank_getenv(spank, name.c_str(), value.data(), static_cast<int>(value.size())) !=
      ESPANK_SUCCESS) {
    return std::nullopt;
  }
  return std::string(value.c_str());
}

std::vector<std::string> JobEnvironment(spank_t spank) {
  char** all = nullptr;
  std::vector<std::string> copy;
  if (spank_get_item(spank, S_JOB_ENV, &all) != ESPANK_SUCCESS) return copy;
  for (; all != nullptr && *all != nullptr; ++all) copy.emplace_back(*all);
  return copy;
}

EnrootCall CallOf(const Step& step) {
  EnrootCall call = {step.user, TheSettings()->enroot, VariablesForEnroot(step.environment)};
  const char* path = getenv("PATH");
  call.environment.emplace_back("PATH", path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin");
  call.environment.emplace_back("ENROOT_DATA_PATH", step.runtime + "/data");
  call.environment.emplace_back("ENROOT_TEMP_PATH", step.runtime);
  return call;
}

// Makes, as root, a directory of the user for this node. Nodes of a test are on one machine, so
// each has its own.
bool MakeRuntimeDirectory(Step* step, const std::string& node) {
  const std::string parent = TheSettings()->runtime_path + "/" + node;
  step->runtime = parent + "/" + std::to_string(step->user.uid);
  for (const std::string& path : {TheSettings()->runtime_path, parent, step->runtime}) {
    if (mkdir(path.c_str(), path == step->runtime ? 0700 : 0755) != 0 && errno != EEXIST) {
      slurm_error("pyxis: couldn't mkdir %s: %s", path.c_str(), strerror(errno));
      return false;
    }
  }
  if (chown(step->runtime.c_str(), step->user.uid, step->user.gid) != 0) {
    slurm_error("pyxis: couldn't chown %s: %s", step->runtime.c_str(), strerror(errno));
    return false;
  }
  return true;
}

// Runs in slurmstepd, as root.
int BeginStep(spank_t spank) {
  auto step = std::make_unique<Step>();
  if (spank_get_item(spank, S_JOB_UID, &step->user.uid) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_GID, &step->user.gid) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_ID, &step->job_id) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step->step_id) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &step->local_tasks) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &step->all_tasks) != ESPANK_SUCCESS) {
    slurm_error("pyxis: couldn't get the step's attributes");
    return -1;
  }
  // slurmd tells its children; nodes of a test share their machine's name.
  const char* node = getenv("SLURMD_NODENAME");
  if (!MakeRuntimeDirectory(step.get(), node != nullptr ? node : "node")) return -1;
  TheStep() = std::move(step);
  return 0;
}

// The list has one name on each line.
bool ContainerExists(const Step& step) {
  const ChildLog log;
  if (!RunEnroot(CallOf(step), {"list"}, log)) {
    slurm_error("pyxis: couldn't get list of containers");
    log.Print(true);
    return false;
  }
  return ("\n" + log.Text()).find("\n" + step.name + "\n") != std::string::npos;
}

Shared* MakeShared() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* shared = new (memory) Shared();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  // A task that is killed while it imports must not hold up the others.
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->mutex, &attributes);
  return shared;
}

// Decides the container's name, and whether it is there already.
bool NameContainer(Step* step) {
  const Options& options = GivenOptions();
  const std::string scope =
      TheSettings()->job_scope ? "pyxis_" + std::to_string(step->job_id) + "_" : "pyxis_";
  if (!options.name) {
    step->name = scope + std::to_string(step->job_id) + "." + std::to_string(step->step_id);
    return true;
  }
  step->name = scope + *options.name;
  step->temporary = false;
  step->exists = ContainerExists(*step);
  if (options.name_flag == "create" && step->exists) {
    slurm_error(
        "pyxis: error: \"create\" flag was passed to --container-name but the container already "
        "exists");
    return false;
  }
  if (options.name_flag == "exec") {
    slurm_error(
        "pyxis: error: \"exec\" flag was passed to --container-name but the container is not "
        "running");
    return false;
  }
  if (!step->exists && !options.image) {
    slurm_error(
        "pyxis: error: a container with name \"%s\" does not exist, and --container-image is not "
        "set",
        step->name.c_str());
    return false;
  }
  return true;
}

// The script of `sbatch --container-image` is in the node's spool, which the container does not
// have.
void MountBatchScript(spank_t spank) {
  int count = 0;
  char** words = nullptr;
  if (spank_get_item(spank, S_JOB_ARGV, &count, &words) == ESPANK_SUCCESS && count > 0)
    AddMount({words[0], words[0], {"ro"}});
}

// Makes a directory under the data path from an image.
bool CreateRootfs(const Step& step) {
  const std::string& image = *GivenOptions().image;
  const EnrootCall call = CallOf(step);
  if (image.starts_with('/') || image.starts_with('.')) {
    const ChildLog log;
    if (RunEnroot(call, {"create", "--name", step.name, image}, log)) return true;
    slurm_error("pyxis: failed to create container filesystem for image: %s", image.c_str());
    log.Print(true);
    return false;
  }
  const bool has_scheme = image.starts_with("docker://") || image.starts_with("dockerd://");
  const std::string squashfs = step.runtime + "/" + std::to_string(step.job_id) + "." +
                               std::to_string(step.step_id) + ".squashfs";
  // Chatty where it may be a person's terminal.
  if (step.all_tasks <= 1) slurm_spank_log("pyxis: importing docker image: %s", image.c_str());
  const ChildLog import_log;
  bool done = RunEnroot(
      call, {"import", "--output", squashfs, (has_scheme ? "" : "docker://") + image}, import_log);
  if (!done) {
    slurm_error("pyxis: failed to import docker image: %s", image.c_str());
    import_log.Print(true);
  } else {
    slurm_spank_log("pyxis: imported docker image: %s", image.c_str());
    const ChildLog create_log;
    done = RunEnroot(call, {"create", "--name", step.name, squashfs}, create_log);
    if (!done) {
      slurm_error("pyxis: failed to create container filesystem for image: %s", image.c_str());
      create_log.Print(true);
    }
  }
  unlink(squashfs.c_str());
  return done;
}

ContainerPlan PlanOf(const Step& step, spank_t spank) {
  const Options& options = GivenOptions();
  ContainerPlan plan;
  plan.user = step.user;
  plan.rootfs = step.runtime + "/data/" + step.name;
  plan.remap_root = options.remap_root.value_or(false);
  plan.writable = options.writable.value_or(false);
  plan.entrypoint = options.entrypoint.value_or(TheSettings()->execute_entrypoint);
  plan.mounts = options.mounts;
  plan.environment = CallOf(step).environment;
  std::erase_if(plan.environment,
                [](const auto& entry) { return entry.first.starts_with("ENROOT_"); });
  if (options.mount_home.value_or(TheSettings()->mount_home))
    plan.home = JobVariable(spank, "HOME").value_or("");
  for (const std::string& name : options.env) {
    const std::optional<std::string> value = JobVariable(spank, name);
    if (value && !value->empty()) plan.overrides.emplace_back(name, *value);
  }
  return plan;
}

// The first task of the node calls it; the others find what it did.
pid_t CreateAndStart(const Step& step, spank_t spank) {
  const ContainerPlan plan = PlanOf(step, spank);
  const std::string missing = MissingSource(plan);
  if (!missing.empty()) {
    slurm_error("pyxis: --container-mounts: source path does not exist: %s", missing.c_str());
    return -1;
  }
  if (!step.exists && !CreateRootfs(step)) return -1;
  const ChildLog log;
  const pid_t pid = StartContainer(plan, log);
  if (pid < 0) {
    log.Print(true);
  } else if (plan.entrypoint && GivenOptions().entrypoint_log) {
    log.Print(false);
  }
  return pid;
}

pid_t ContainerOf(const Step& step, spank_t spank) {
  Shared& shared = *step.shared;
  if (pthread_mutex_lock(&shared.mutex) == EOWNERDEAD) pthread_mutex_consistent(&shared.mutex);
  if (!shared.tried) {
    shared.tried = true;
    shared.container = CreateAndStart(step, spank);
  }
  const pid_t pid = shared.container;
  pthread_mutex_unlock(&shared.mutex);
  return pid;
}

// Torch wants names that differ by task, which the container's environment cannot have.
void SetTorchRank(spank_t spank) {
  if (!JobVariable(spank, "PYTORCH_VERSION")) return;
  const std::optional<std::string> rank = JobVariable(spank, "SLURM_PROCID");
  const std::optional<std::string> local = JobVariable(spank, "SLURM_LOCALID");
  if (rank) spank_setenv(spank, "RANK", rank->c_str(), 1);
  if (local) spank_setenv(spank, "LOCAL_RANK", local->c_str(), 1);
}

// Runs in a task, as the user.
int EnterTask(Step* step, spank_t spank) {
  if (step->broken) return -1;
  step->environment = JobEnvironment(spank);
  const pid_t container = ContainerOf(*step, spank);
  if (container < 0) {
    slurm_error("pyxis: couldn't start container");
    if (GivenOptions().entrypoint.value_or(TheSettings()->execute_entrypoint)) {
      slurm_error(
          "pyxis: if the image has an unusual entrypoint, try using --no-container-entrypoint");
    }
    return -1;
  }
  for (const auto& [name, value] : VariablesOf(container))
    spank_setenv(spank, name.c_str(), value.c_str(), 1);
  SetTorchRank(spank);
  if (!JoinContainer(container, GivenOptions().workdir.value_or(""))) return -1;
  // The last one needs the first process no longer.
  if (++step->shared->joined == step->local_tasks) kill(container, SIGCONT);
  return 0;
}

// Runs in slurmstepd, when the last task has ended.
int EndStep(const Step& step) {
  const std::optional<std::string>& save = GivenOptions().save;
  bool saved = true;
  if (save && step.shared->joined == step.local_tasks) {
    const ChildLog log;
    saved = RunEnroot(CallOf(step), {"export", "--force", "--output", *save, step.name}, log);
    if (saved) {
      slurm_spank_log("pyxis: exported container %s to %s", step.name.c_str(), save->c_str());
    } else {
      log.Print(true);
      slurm_error("pyxis: failed to export container %s to %s", step.name.c_str(), save->c_str());
    }
  }
  if (step.temporary) {
    const ChildLog log;
    if (!RunEnroot(CallOf(step), {"remove", "--force", step.name}, log))
      slurm_info("pyxis: failed to remove container filesystem: %s", step.name.c_str());
  }
  return saved ? 0 : -1;
}

// A real node has enroot in the PATH of its users.
void OfferEnroot(spank_t spank) {
  const size_t slash = TheSettings()->enroot.rfind('/');
  if (slash == std::string::npos) return;
  const std::string directory = TheSettings()->enroot.substr(0, slash);
  const std::string path = JobVariable(spank, "PATH").value_or("/usr/bin:/bin");
  if ((":" + path + ":").find(":" + directory + ":") == std::string::npos)
    spank_setenv(spank, "PATH", (path + ":" + directory).c_str(), 1);
}

}  // namespace
}  // namespace muster::pyxis

namespace px = muster::pyxis;

MUSTER_HOOK int slurm_spank_init(spank_t spank, int argc, char** argv) {
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
  px::TheSettings() = px::ParseSettings(argc, argv);
  if (!px::TheSettings()) return -1;
  if (context == S_CTX_ALLOCATOR && !px::TheSettings()->sbatch_support) return 0;
  return px::RegisterOptions(spank) ? 0 : -1;
}

MUSTER_HOOK int slurm_spank_init_post_opt(spank_t spank, int, char**) {
  const spank_context_t context = spank_context();
  if (!px::TheSettings()) return 0;
  const bool remote = context == S_CTX_REMOTE;
  const auto get = [&](const std::string& name) -> std::optional<std::string> {
    if (remote) return px::JobVariable(spank, name);
    const char* value = getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
  if (!px::TakeDefaults(get)) return -1;
  if (!px::GivenOptions().WantsContainer()) {
    px::ComplainOfIgnored();
    return 0;
  }
  return remote ? px::BeginStep(spank) : 0;
}

// Slurm does not tell srun of a failure here; so a task reports it.
MUSTER_HOOK int slurm_spank_user_init(spank_t spank, int, char**) {
  if (!px::TheSettings()) return 0;
  px::OfferEnroot(spank);
  px::Step* step = px::TheStep().get();
  if (step == nullptr) return 0;
  step->environment = px::JobEnvironment(spank);
  step->shared = px::MakeShared();
  step->broken = step->shared == nullptr || !px::NameContainer(step);
  if (step->step_id == SLURM_BATCH_SCRIPT) px::MountBatchScript(spank);
  return 0;
}

MUSTER_HOOK int slurm_spank_task_init(spank_t spank, int, char**) {
  px::Step* step = px::TheStep().get();
  return step == nullptr ? 0 : px::EnterTask(step, spank);
}

MUSTER_HOOK int slurm_spank_task_exit(spank_t, int, char**) {
  const px::Step* step = px::TheStep().get();
  if (step == nullptr || step->shared == nullptr) return 0;
  return ++step->shared->ended == step->local_tasks ? px::EndStep(*step) : 0;
}
