#include "clients/cpp/slurm/sbatch_container.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "clients/cpp/slurm/sbatch_shape.h"
#include "contract/parts.h"
#include "contract/slurm_signal.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::Split;

// Texts and lists.
constexpr std::string_view kContainerValues[] = {"container-env",    "container-image",
                                                 "container-mounts", "container-name",
                                                 "container-save",   "container-workdir"};

// Switches, of which the second one takes the first one back.
constexpr std::pair<std::string_view, std::string_view> kContainerSwitches[] = {
    {"container-entrypoint", "no-container-entrypoint"},
    {"container-mount-home", "no-container-mount-home"},
    {"container-remap-root", "no-container-remap-root"},
    {"container-writable", "container-readonly"}};

class ContainerMapper {
 public:
  ContainerMapper(const Settings& given, const std::string& directory, v1::JobSpec* spec,
                  contract::FieldErrors* errors)
      : given_(given), directory_(directory), spec_(spec), errors_(errors) {}

  void Map(const Setting& image) {
    const std::string& value = image.value;
    if (value.empty()) return Bad(image, "name an image, or leave the option out");
    spec_->set_image(value.starts_with('.') ? Absolute(value) : value);
    if (const Setting* mounts = given_.Find("container-mounts")) MapMounts(*mounts);
    if (const Setting* name = given_.Find("container-name")) MapName(*name);
    if (const Setting* env = given_.Find("container-env")) {
      for (std::string_view one : Split(env->value, ',')) container().add_env(std::string(one));
    }
    if (const Setting* save = given_.Find("container-save")) {
      if (save->value.empty()) Bad(*save, "name a file");
      AddExtra("container-save", Absolute(save->value), spec_);
    }
    if (const Setting* workdir = given_.Find("container-workdir")) {
      if (!workdir->value.starts_with('/')) Bad(*workdir, "use an absolute path of the container");
      AddExtra("container-workdir", workdir->value, spec_);
    }
    MapSwitches();
    CheckSignal();
  }

 private:
  v1::SlurmContainer& container() { return *spec_->mutable_slurm()->mutable_container(); }

  void Bad(const Setting& setting, std::string_view remedy) {
    AddUnreadable(setting, remedy, errors_);
  }

  std::string Absolute(std::string_view path) const {
    return path.starts_with('/') ? std::string(path) : fmt::format("{}/{}", directory_, path);
  }

  // Reads SRC[:DST[:FLAG+FLAG]], with commas between them.
  void MapMounts(const Setting& setting) {
    for (std::string_view one : Split(setting.value, ',')) {
      const std::vector<std::string_view> parts = Split(one, ':');
      const std::string_view source = parts[0];
      const std::string_view target = parts.size() > 1 ? parts[1] : source;
      if (!(source.starts_with('/') || source.starts_with('.')) || parts.size() > 3) {
        return Bad(setting,
                   "write SOURCE[:TARGET[:ro]] with paths; for tmpfs and umount start the "
                   "container in the script, with srun --container-image");
      }
      if (!target.starts_with('/'))
        return Bad(setting, "name an absolute path of the container, as in ./data:/data");
      v1::Mount& mount = *spec_->add_mounts();
      mount.set_source(Absolute(source));
      mount.set_target(std::string(target));
      if (parts.size() < 3) continue;
      mount.set_read_only(parts[2] == "ro");
      if (parts[2] != "ro" && parts[2] != "rw") {
        return Bad(setting,
                   "of the flags only ro and rw are taken; for others start the container "
                   "in the script, with srun --container-image");
      }
    }
  }

  void MapName(const Setting& setting) {
    const size_t colon = std::min(setting.value.find(':'), setting.value.size());
    const std::string_view flag = std::string_view(setting.value).substr(colon);
    if (!flag.empty() && flag != ":auto") {
      return Bad(setting,
                 "leave the part behind ':' out: a container of the name is used where "
                 "there is one, and else made");
    }
    container().set_name(setting.value.substr(0, colon));
  }

  // True: the first one of the pair was given; nothing if none was.
  std::optional<bool> SwitchOf(const std::pair<std::string_view, std::string_view>& names) {
    const Setting* on = given_.Find(names.first);
    const Setting* off = given_.Find(names.second);
    if (on != nullptr && off != nullptr) {
      errors_->Add(
          fmt::format("--{} ({}) and --{} ({})", names.first, on->where, names.second, off->where),
          "Pyxis takes one of them; leave the other one out");
    }
    if (on == nullptr && off == nullptr) return std::nullopt;
    return on != nullptr;
  }

  void MapSwitches() {
    if (SwitchOf(kContainerSwitches[0]).value_or(false)) container().set_entrypoint(true);
    if (const auto home = SwitchOf(kContainerSwitches[1])) container().set_mount_home(*home);
    if (const auto root = SwitchOf(kContainerSwitches[2])) container().set_remap_root(*root);
    const auto writable = SwitchOf(kContainerSwitches[3]);
    if (!writable.has_value()) return;
    if (*writable) {
      container().set_writable(true);
    } else {
      AddExtra("container-readonly", "", spec_);
    }
  }

  // Slurm sends it to steps, and the script in its container is one; with sbatch it is none.
  void CheckSignal() {
    const Setting* setting = given_.Find("signal");
    if (setting == nullptr) return;
    const auto signal = contract::ParseSlurmSignal(setting->value);
    if (signal.has_value() && !signal->command_only)
      Bad(*setting, "a script in a container gets it with B: in front only, as in B:USR1@120");
  }

  const Settings& given_;
  const std::string& directory_;
  v1::JobSpec* const spec_;
  contract::FieldErrors* const errors_;
};

}  // namespace

bool IsOfContainer(std::string_view option) {
  return std::find(std::begin(kContainerValues), std::end(kContainerValues), option) !=
             std::end(kContainerValues) ||
         !OppositeOf(option).empty();
}

std::string_view OppositeOf(std::string_view option) {
  for (const auto& [on, off] : kContainerSwitches) {
    if (option == on) return off;
    if (option == off) return on;
  }
  return "";
}

void MapContainer(const Settings& given, const std::string& directory, v1::JobSpec* spec,
                  contract::FieldErrors* errors, std::vector<std::string>* notes) {
  if (const Setting* image = given.Find("container-image"))
    return ContainerMapper(given, directory, spec, errors).Map(*image);
  if (const Setting* name = given.Find("container-name")) {
    return AddUnreadable(*name,
                         "give --container-image, too: it is for the nodes that have no container "
                         "of the name yet",
                         errors);
  }
  for (const Setting& setting : given.settings) {
    if (!IsOfContainer(setting.option->name)) continue;
    notes->push_back(fmt::format("--{} ({}) has no effect without --container-image",
                                 setting.option->name, setting.where));
  }
}

}  // namespace muster::client::slurm
