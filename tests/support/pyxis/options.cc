#include "tests/support/pyxis/options.h"

#include <algorithm>
#include <string_view>

#include "tests/support/pyxis/settings.h"

namespace muster::pyxis {
namespace {

// Returns the one piece of state that SPANK's callbacks can reach.
Options& Given() {
  static Options options;
  return options;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool IsPath(std::string_view text) { return text.starts_with('.') || text.starts_with('/'); }

int Required(const char* option) {
  slurm_error("pyxis: --%s: argument required", option);
  return -1;
}

// Slurm calls twice with the same value; two values are a mistake.
int SetOnce(std::optional<std::string>* to, const char* option, const char* value) {
  if (value == nullptr || *value == '\0') return Required(option);
  if (to->has_value() && **to != value) {
    slurm_error("pyxis: --%s specified multiple times", option);
    return -1;
  }
  *to = value;
  return 0;
}

int SetSwitch(std::optional<bool>* to, int value, const char* yes, const char* no) {
  if (to->has_value() && **to != (value != 0)) {
    slurm_error("pyxis: both --%s and --%s were specified", yes, no);
    return -1;
  }
  *to = value != 0;
  return 0;
}

// Reads SRC[:DST[:FLAG+FLAG...]].
std::optional<Mount> ParseMount(const std::string& text) {
  const std::vector<std::string> parts = Split(text, ':');
  if (parts[0].empty() || (parts.size() > 1 && parts[1].empty())) {
    slurm_error("pyxis: --container-mounts: invalid format: %s", text.c_str());
    return std::nullopt;
  }
  Mount mount = {parts[0], parts.size() > 1 ? parts[1] : parts[0], {}};
  for (size_t i = 2; i < parts.size(); ++i) {
    for (std::string& flag : Split(parts[i], '+')) {
      if (!flag.empty()) mount.flags.push_back(std::move(flag));
    }
  }
  const char* problem = nullptr;
  if (!IsPath(mount.source) && mount.source != "tmpfs" && mount.source != "umount") {
    problem = "mount source must be a relative path, an absolute path, \"tmpfs\" or \"umount\"";
  } else if (!IsPath(mount.target)) {
    problem = "mount target must be a relative path or an absolute path";
  }
  if (problem != nullptr) {
    slurm_error("pyxis: %s", problem);
    slurm_error("pyxis: could not add mount entry: %s:%s", mount.source.c_str(),
                mount.target.c_str());
    return std::nullopt;
  }
  return mount;
}

int OnImage(int, const char* value, int) {
  return SetOnce(&Given().image, "container-image", value);
}

int OnMounts(int, const char* value, int) {
  if (value == nullptr || *value == '\0') return Required("container-mounts");
  for (const std::string& part : Split(value, ',')) {
    std::optional<Mount> mount = ParseMount(part);
    if (!mount) return -1;
    AddMount(*std::move(mount));
  }
  return 0;
}

int OnWorkdir(int, const char* value, int) {
  return SetOnce(&Given().workdir, "container-workdir", value);
}

int OnName(int, const char* value, int) {
  if (value == nullptr || *value == '\0') return Required("container-name");
  const std::vector<std::string> parts = Split(value, ':');
  if (parts[0].empty()) {
    slurm_error("pyxis: --container-name: empty name");
    return -1;
  }
  const std::string flag = parts.size() > 1 && !parts[1].empty() ? parts[1] : "auto";
  if (flag != "auto" && flag != "create" && flag != "exec" && flag != "no_exec") {
    slurm_error(
        "pyxis: --container-name: flag must be \"auto\", \"create\", \"exec\" or \"no_exec\"");
    return -1;
  }
  Given().name_flag = flag;
  return SetOnce(&Given().name, "container-name", parts[0].c_str());
}

int OnSave(int, const char* value, int) {
  if (value != nullptr && std::string_view(value).ends_with('/')) {
    slurm_error("pyxis: --container-save: target is a directory");
    return -1;
  }
  return SetOnce(&Given().save, "container-save", value);
}

int OnMountHome(int value, const char*, int) {
  return SetSwitch(&Given().mount_home, value, "container-mount-home", "no-container-mount-home");
}

int OnRemapRoot(int value, const char*, int) {
  return SetSwitch(&Given().remap_root, value, "container-remap-root", "no-container-remap-root");
}

int OnEntrypoint(int value, const char*, int) {
  return SetSwitch(&Given().entrypoint, value, "container-entrypoint", "no-container-entrypoint");
}

int OnEntrypointLog(int value, const char*, int) {
  Given().entrypoint_log = value != 0;
  return 0;
}

int OnWritable(int value, const char*, int) {
  return SetSwitch(&Given().writable, value, "container-writable", "container-readonly");
}

int OnEnv(int, const char* value, int) {
  if (value == nullptr || *value == '\0') return Required("container-env");
  std::vector<std::string>& env = Given().env;
  for (std::string& name : Split(value, ',')) {
    if (name.empty()) {
      slurm_error("pyxis: --container-env: invalid format: %s", value);
      return -1;
    }
    if (std::find(env.begin(), env.end(), name) == env.end()) env.push_back(std::move(name));
  }
  return 0;
}

struct Row {
  const char* name;
  const char* argument;  // null: the option takes none
  const char* help;
  int value;
  spank_opt_cb_f callback;
};

constexpr Row kRows[] = {
    {"container-image", "[USER@][REGISTRY#]IMAGE[:TAG]|PATH",
     "[pyxis] image of the container: a Docker image in enroot's form, or a squashfs file of the "
     "node",
     1, OnImage},
    {"container-mounts", "SRC:DST[:FLAGS][,SRC:DST...]",
     "[pyxis] bind mounts for the container; flags are joined by \"+\", as in \"ro+rprivate\"", 1,
     OnMounts},
    {"container-workdir", "PATH", "[pyxis] where in the container the task starts", 1, OnWorkdir},
    {"container-name", "NAME",
     "[pyxis] keep the container under this name, and take it from there if it exists", 1, OnName},
    {"container-save", "PATH", "[pyxis] write the container to a squashfs file of the node", 1,
     OnSave},
    {"container-mount-home", nullptr, "[pyxis] mount the user's home directory", 1, OnMountHome},
    {"no-container-mount-home", nullptr, "[pyxis] do not mount the user's home directory", 0,
     OnMountHome},
    {"container-remap-root", nullptr, "[pyxis] be root within the container, and nowhere else", 1,
     OnRemapRoot},
    {"no-container-remap-root", nullptr, "[pyxis] keep the user's id within the container", 0,
     OnRemapRoot},
    {"container-entrypoint", nullptr, "[pyxis] run the image's entrypoint", 1, OnEntrypoint},
    {"no-container-entrypoint", nullptr, "[pyxis] do not run the image's entrypoint", 0,
     OnEntrypoint},
    {"container-entrypoint-log", nullptr, "[pyxis] print what the entrypoint writes", 1,
     OnEntrypointLog},
    {"container-writable", nullptr, "[pyxis] let the container's files be written", 1, OnWritable},
    {"container-readonly", nullptr, "[pyxis] keep the container's files as they are", 0,
     OnWritable},
    {"container-env", "NAME[,NAME...]",
     "[pyxis] variables for which the job's value wins over the image's, also for the entrypoint",
     1, OnEnv},
};

// Returns the variable of an option: container-mount-home is PYXIS_CONTAINER_MOUNT_HOME.
std::string VariableOf(std::string_view option) {
  std::string name = "PYXIS_";
  for (const char c : option) name += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return name;
}

bool WasGiven(std::string_view option) {
  const Options& given = Given();
  if (option == "container-image") return given.image.has_value();
  if (option == "container-mounts") return !given.mounts.empty();
  if (option == "container-workdir") return given.workdir.has_value();
  if (option == "container-name") return given.name.has_value();
  if (option == "container-save") return given.save.has_value();
  if (option == "container-mount-home") return given.mount_home.has_value();
  if (option == "container-remap-root") return given.remap_root.has_value();
  if (option == "container-entrypoint") return given.entrypoint.has_value();
  if (option == "container-entrypoint-log") return given.entrypoint_log;
  if (option == "container-env") return !given.env.empty();
  return given.writable.has_value();
}

}  // namespace

const Options& GivenOptions() { return Given(); }

void AddMount(Mount mount) {
  std::vector<Mount>& mounts = Given().mounts;
  if (std::find(mounts.begin(), mounts.end(), mount) == mounts.end())
    mounts.push_back(std::move(mount));
}

bool RegisterOptions(spank_t spank) {
  for (const Row& row : kRows) {
    spank_option option = {const_cast<char*>(row.name),
                           const_cast<char*>(row.argument),
                           const_cast<char*>(row.help),
                           row.argument != nullptr ? 1 : 0,
                           row.value,
                           row.callback};
    const spank_err_t result = spank_option_register(spank, &option);
    if (result != ESPANK_SUCCESS) {
      slurm_error("pyxis: couldn't register option %s: %s", row.name, spank_strerror(result));
      return false;
    }
  }
  return true;
}

bool TakeDefaults(const Lookup& get) {
  for (const Row& row : kRows) {
    if (std::string_view(row.name).starts_with("no-") || WasGiven(row.name)) continue;
    const std::optional<std::string> value = get(VariableOf(row.name));
    if (!value) continue;
    const std::optional<bool> yes = ParseBool(*value);
    // A switch with another word is as if it were not there.
    if (row.argument == nullptr && !yes) continue;
    const int number = row.argument != nullptr ? 0 : static_cast<int>(*yes == (row.value != 0));
    if (row.callback(number, value->c_str(), 0) != 0) return false;
  }
  return true;
}

void ComplainOfIgnored() {
  const Options& given = Given();
  const auto complain = [](bool used, const char* option) {
    if (used) {
      slurm_error(
          "pyxis: ignoring --%s because neither --container-image nor --container-name is set",
          option);
    }
  };
  complain(!given.mounts.empty(), "container-mounts");
  complain(given.workdir.has_value(), "container-workdir");
  complain(given.save.has_value(), "container-save");
  complain(given.mount_home.has_value(), "[no-]container-mount-home");
  complain(given.remap_root.has_value(), "[no-]container-remap-root");
  complain(given.entrypoint.has_value(), "[no-]container-entrypoint");
  complain(given.entrypoint_log, "container-entrypoint-log");
  complain(given.writable == false, "container-readonly");
  complain(given.writable == true, "container-writable");
}

}  // namespace muster::pyxis
