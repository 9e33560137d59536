#include "agents/machines/container.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "agents/machines/split.h"

namespace muster::machines {
namespace {

// Variables of this process that a tool may need. The rest may be secrets of the agent.
constexpr const char* kToolVariables[] = {"PATH",     "HOME",       "USER",        "LOGNAME",
                                          "LANG",     "TMPDIR",     "HTTP_PROXY",  "HTTPS_PROXY",
                                          "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"};
constexpr const char* kToolPrefixes[] = {"XDG_",      "DOCKER_",  "CONTAINERS_", "CONTAINER_",
                                         "REGISTRY_", "STORAGE_", "ENROOT_",     "APPTAINER_"};

bool IsForTools(std::string_view variable) {
  const std::string_view name = variable.substr(0, variable.find('='));
  return std::any_of(std::begin(kToolVariables), std::end(kToolVariables),
                     [&](const char* wanted) { return name == wanted; }) ||
         std::any_of(std::begin(kToolPrefixes), std::end(kToolPrefixes),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

void Append(Words* words, const Words& more) {
  words->insert(words->end(), more.begin(), more.end());
}

std::string Join(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

bool IsShellName(std::string_view name) {
  const auto is_good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_good);
}

// Writes "registry/repository:tag" as enroot has it: "docker://registry#repository:tag".
std::string EnrootImage(const std::string& image) {
  const size_t slash = image.find('/');
  if (slash == std::string::npos) return "docker://" + image;
  return "docker://" + image.substr(0, slash) + "#" + image.substr(slash + 1);
}

// ---- podman and docker, which have the same words for most

Words GpuOptions(const ContainerRequest& request) {
  if (request.gpus.empty()) return {};
  // ROCR_VISIBLE_DEVICES says which of them.
  if (request.has_amd_gpus) return {"--device=/dev/kfd", "--device=/dev/dri"};
  if (request.tool == kDocker) {
    // The value has quotes of its own, for the option takes a list of options there.
    return {"--gpus=\"device=" + Join(request.gpus) + "\""};
  }
  Words options;
  for (const std::string& gpu : request.gpus) options.push_back("--device=nvidia.com/gpu=" + gpu);
  return options;
}

Words LimitOptions(const ContainerRequest& request) {
  Words options;
  if (request.memory_bytes > 0) {
    const std::string bytes = std::to_string(request.memory_bytes);
    // The limit is that of memory and swap together, which leaves no swap.
    options = {"--memory=" + bytes, "--memory-swap=" + bytes};
  }
  if (request.cores > 0) options.push_back("--cpus=" + std::to_string(request.cores));
  return options;
}

ContainerPlan PlanOfDaemon(const ContainerRequest& request) {
  const std::string& tool = request.tool;
  ContainerPlan plan;
  plan.is_there = {tool, "image", "inspect", request.image};
  plan.pull = {{tool, "pull", "--quiet", request.image}};
  // podman's root is the user; docker's is the host's.
  const std::string user =
      tool == kPodman ? "0:0" : std::to_string(request.user) + ":" + std::to_string(request.group);
  // An image's own entrypoint would come before the program. Ports and shared memory are the
  // host's: the ranks speak to each other.
  plan.run = {tool,
              "run",
              "--name=" + request.name,
              "--pull=never",
              "--network=host",
              "--ipc=host",
              "--user=" + user,
              "--entrypoint=",
              "--security-opt=label=disable"};
  // The daemon of docker would let a setuid program of the image be the root of the host, with the
  // mounts of the job.
  if (tool == kDocker) plan.run.push_back("--security-opt=no-new-privileges");
  for (const std::string& mount : request.mounts) plan.run.push_back("--volume=" + mount);
  Append(&plan.run, GpuOptions(request));
  Append(&plan.run, LimitOptions(request));
  plan.run.push_back(request.image);
  plan.was_oom = {tool, "inspect", "--format={{.State.OOMKilled}}", request.name};
  return plan;
}

// Returns the line of an answer that begins with one of these; empty if there is none. A tool's
// warnings stand in other lines.
std::string LineOf(const std::string& answer, const Words& beginnings) {
  for (const std::string& line : LinesOf(answer)) {
    for (const std::string& beginning : beginnings) {
      if (line.starts_with(beginning)) return line;
    }
  }
  return "";
}

// Searches the words of podman's line, "[cpuset cpu memory]".
bool HasController(std::string line, const std::string& controller) {
  for (char& c : line) {
    if (c == '[' || c == ']') c = ' ';
  }
  return line.find(" " + controller + " ") != std::string::npos;
}

// ---- the others, which leave the program in the group of who starts it

ContainerPlan PlanOfEnroot(const ContainerRequest& request) {
  const std::string file = request.directory + "/" + kEnrootImageFile;
  ContainerPlan plan;
  plan.pull = {{kEnroot, "import", "--output", file, EnrootImage(request.image)},
               {kEnroot, "create", "--name", request.name, file}};
  plan.run = {kEnroot, "start", "--root", "--rw"};
  for (const std::string& mount : request.mounts) {
    const bool is_read_only = mount.ends_with(":ro");
    const std::string paths = is_read_only ? mount.substr(0, mount.size() - 3) : mount;
    Append(&plan.run,
           {"--mount", paths + ":none:x-create=auto,rbind," + (is_read_only ? "ro" : "rw")});
  }
  if (request.has_amd_gpus)
    Append(&plan.run, {"--mount", "/dev/kfd:/dev/kfd", "--mount", "/dev/dri:/dev/dri"});
  // The script takes the place of the image's own command.
  Append(&plan.run, {"--rc", request.directory + "/" + kEnterFile, request.name});
  const bool has_nvidia = !request.gpus.empty() && !request.has_amd_gpus;
  plan.environment = {"NVIDIA_VISIBLE_DEVICES=" + (has_nvidia ? Join(request.gpus) : "void"),
                      "NVIDIA_DRIVER_CAPABILITIES=compute,utility"};
  return plan;
}

ContainerPlan PlanOfApptainer(const ContainerRequest& request) {
  const std::string file = request.directory + "/" + kApptainerImageFile;
  ContainerPlan plan;
  plan.pull = {{kApptainer, "pull", "--force", file, "docker://" + request.image}};
  plan.run = {kApptainer, "exec", "--cleanenv", "--no-home", "--writable-tmpfs"};
  for (const std::string& mount : request.mounts) Append(&plan.run, {"--bind", mount});
  if (!request.gpus.empty()) plan.run.push_back(request.has_amd_gpus ? "--rocm" : "--nv");
  plan.run.push_back(file);
  return plan;
}

}  // namespace

Words ToolVariables() {
  Words variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (IsForTools(*variable)) variables.emplace_back(*variable);
  }
  return variables;
}

bool SetsLimits(std::string_view tool) { return tool == kPodman || tool == kDocker; }

Words LimitsQuestionOf(std::string_view tool) {
  if (tool == kPodman) return {kPodman, "info", "--format={{.Host.CgroupControllers}}"};
  return {kDocker, "info", "--format={{.MemoryLimit}} {{.CPUCfsQuota}}"};
}

std::string WhyNoLimits(std::string_view tool, const std::string& answer, uint64_t memory_bytes,
                        uint32_t cores) {
  const bool is_podman = tool == kPodman;
  const std::string line = LineOf(answer, is_podman ? Words{"["} : Words{"true ", "false "});
  if (line.empty()) return std::string(tool) + " does not say which limits it can set";
  const bool memory = is_podman ? HasController(line, "memory") : line.starts_with("true ");
  const bool has_cores = is_podman ? HasController(line, "cpu") : line.ends_with(" true");
  if (memory_bytes > 0 && !memory)
    return std::string(tool) + " can set no limit of memory for this user";
  if (cores > 0 && !has_cores)
    return std::string(tool) + " can set no limit of cores for this user";
  return "";
}

Words RemovalOf(std::string_view tool, const std::string& name) {
  // podman would wait for what ignores a TERM.
  if (tool == kPodman) return {kPodman, "rm", "--force", "--time=0", name};
  if (tool == kDocker) return {kDocker, "rm", "--force", name};
  if (tool == kEnroot) return {kEnroot, "remove", "--force", name};
  return {};
}

Words ListingOf(std::string_view tool, const std::string& name) {
  if (tool == kEnroot) return {kEnroot, "list"};
  return {std::string(tool), "ps", "--all", "--format={{.Names}}", "--filter=name=" + name};
}

ContainerPlan PlanContainer(const ContainerRequest& request) {
  ContainerPlan plan = SetsLimits(request.tool)  ? PlanOfDaemon(request)
                       : request.tool == kEnroot ? PlanOfEnroot(request)
                                                 : PlanOfApptainer(request);
  plan.remove = RemovalOf(request.tool, request.name);
  // enroot starts the script by itself.
  if (request.tool != kEnroot) Append(&plan.run, {"/bin/sh", request.directory + "/" + kEnterFile});
  return plan;
}

std::string EnterScript(const Words& environment, const std::string& working_directory,
                        bool is_first) {
  std::string script = "#!/bin/sh\n";
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos || !IsShellName(variable.substr(0, equals))) continue;
    script +=
        "export " + variable.substr(0, equals) + "=" + Quoted(variable.substr(equals + 1)) + "\n";
  }
  script += "cd " + Quoted(working_directory) + " || exit 1\n";
  if (!is_first) return script + "exec \"$@\"\n";
  // A TERM may come before the child's number is known. A wait that a signal has ended says nothing
  // of the child; once it has been reaped, it is gone.
  return script +
         "muster_term=\n"
         "trap 'muster_term=1; kill -TERM $muster_child 2>/dev/null' TERM\n"
         "\"$@\" &\n"
         "muster_child=$!\n"
         "test -z \"$muster_term\" || kill -TERM $muster_child\n"
         "while :; do\n"
         "  wait $muster_child\n"
         "  muster_code=$?\n"
         "  kill -0 $muster_child 2>/dev/null || exit $muster_code\n"
         "done\n";
}

}  // namespace muster::machines
