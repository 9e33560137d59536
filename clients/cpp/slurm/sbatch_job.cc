#include "clients/cpp/slurm/sbatch_job.h"

#include <algorithm>
#include <array>
#include <optional>

#include "clients/cpp/slurm/sbatch_array.h"
#include "clients/cpp/slurm/sbatch_container.h"
#include "clients/cpp/slurm/sbatch_shape.h"
#include "clients/cpp/slurm/sbatch_values.h"
#include "contract/batch_output.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/shell_environment.h"
#include "contract/slurm_options.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "digest/sha256.h"
#include "fmt/format.h"

namespace muster::client::slurm {
namespace {

using contract::Split;

// These are options of sbatch's own work, which say nothing of the job.
constexpr std::array<std::string_view, 10> kOfTheCommand = {
    "help",  "ignore-pbs", "parsable", "quiet", "test-only",
    "usage", "verbose",    "version",  "wait",  "wrap"};

// TakeEnvironment reads these.
constexpr std::array<std::string_view, 4> kOfTheEnvironment = {"export", "export-file",
                                                               "get-user-env", "propagate"};

// Texts that the slurm section has as they are.
struct TextOption {
  std::string_view name;
  void (*set)(v1::SlurmOptions*, const std::string&);
};
constexpr std::array kTexts = {
    TextOption{"account", [](v1::SlurmOptions* s, const std::string& v) { s->set_account(v); }},
    TextOption{"comment", [](v1::SlurmOptions* s, const std::string& v) { s->set_comment(v); }},
    TextOption{"constraint",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_constraint(v); }},
    TextOption{"dependency",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_dependency(v); }},
    TextOption{"exclude", [](v1::SlurmOptions* s, const std::string& v) { s->set_exclude(v); }},
    TextOption{"licenses", [](v1::SlurmOptions* s, const std::string& v) { s->set_licenses(v); }},
    TextOption{"mail-user", [](v1::SlurmOptions* s, const std::string& v) { s->set_mail_user(v); }},
    TextOption{"nodelist", [](v1::SlurmOptions* s, const std::string& v) { s->set_nodelist(v); }},
    TextOption{"qos", [](v1::SlurmOptions* s, const std::string& v) { s->set_qos(v); }},
    TextOption{"reservation",
               [](v1::SlurmOptions* s, const std::string& v) { s->set_reservation(v); }},
    TextOption{"signal", [](v1::SlurmOptions* s, const std::string& v) { s->set_signal(v); }},
};

// Remedies for options that Muster does not take. Others that it does not take have none.
constexpr std::pair<std::string_view, std::string_view> kRemedies[] = {
    {"bbf", "give what the file says with --bb"},
    {"container", "use --container-image, on clusters with Pyxis"},
    {"container-id", "use --container-image, on clusters with Pyxis"},
    {"gid", "jobs run as the user of the cluster's agent"},
    {"gpus-per-socket", "use --gpus-per-node"},
    {"nodefile", "name the nodes with --nodelist"},
    {"uid", "jobs run as the user of the cluster's agent"},
};

std::string_view RemedyFor(std::string_view option) {
  const auto* found = std::find_if(std::begin(kRemedies), std::end(kRemedies),
                                   [&](const auto& one) { return one.first == option; });
  return found == std::end(kRemedies) ? "leave it out, or submit with sbatch itself"
                                      : found->second;
}

// Returns whether a line of it, comments aside, gives the array's number to a command that acts on
// jobs.
bool HandsArrayToSlurm(std::string_view script) {
  for (std::string_view line : Split(script, '\n')) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == line.npos || line[first] == '#') continue;
    if (line.find("SLURM_ARRAY_JOB_ID") == line.npos) continue;
    for (std::string_view command : {"scancel", "scontrol", "sbatch"}) {
      if (line.find(command) != line.npos) return true;
    }
  }
  return false;
}

// Maps the settings one after the other; remembers every one that cannot be used.
class Mapper {
 public:
  explicit Mapper(const SbatchPlace& place) : place_(place) {}

  absl::StatusOr<SbatchJob> Map(const SbatchSubmission& submission) {
    spec().mutable_command()->set_script(submission.script);
    for (const std::string& word : submission.arguments) {
      spec().mutable_command()->add_script_arguments(word);
    }
    spec().set_working_directory(place_.directory);
    spec().set_name(DefaultName(submission));
    MapArray(submission.options.Find("array"));
    batch_script().set_output(
        std::string(job_.tasks.empty() ? contract::kBatchOutput : contract::kArrayBatchOutput));
    if (!job_.tasks.empty() && HandsArrayToSlurm(submission.script)) {
      job_.notes.emplace_back(
          "SLURM_ARRAY_JOB_ID is Muster's number, not Slurm's: to scancel, scontrol and sbatch in "
          "the script it is another job or none; use SLURM_JOB_ID for the task itself, or muster "
          "scancel and muster sbatch where muster can be reached");
    }
    MapShape(submission.options, &spec(), &errors_);
    MapContainer(submission.options, place_.directory, &spec(), &errors_, &job_.notes);
    MapEnvironment(submission.options);
    for (const std::string& option : submission.spank_options)
      spec().mutable_slurm()->add_extra_options(option);
    for (const Setting& setting : submission.options.settings) MapOne(setting);
    CutName();
    CheckSingleton(submission.options.Find("dependency"));
    if (submission.options.Find("chdir") == nullptr)
      spec().mutable_slurm()->add_extra_options(std::string(contract::kHereOption));
    for (const std::string& unknown : submission.options.not_understood) {
      const bool is_variable = unknown.ends_with("(environment)");
      if (is_variable) {
        job_.notes.push_back(fmt::format("{} is not known and has no effect", unknown));
      } else {
        errors_.Add(unknown, unknown.starts_with("#")
                                 ? "directives of other schedulers are not read; add --ignore-pbs"
                                 : "unrecognized option");
      }
    }
    if (absl::Status status = errors_.ToStatus(); !status.ok()) return status;
    return std::move(job_);
  }

 private:
  v1::JobSpec& spec() { return job_.spec; }
  v1::SlurmBatchScript& batch_script() { return *spec().mutable_slurm()->mutable_batch_script(); }

  // Returns sbatch's default: the file's own name, "wrap", or "sbatch" for standard input.
  std::string DefaultName(const SbatchSubmission& submission) const {
    if (submission.options.Find("wrap") != nullptr) return "wrap";
    const std::string& path = place_.script_path;
    return path.empty() || path == "-" ? "sbatch" : path.substr(path.rfind('/') + 1);
  }

  // Slurm takes longer names than Muster. A name that is no text is refused by the check of the
  // spec.
  void CutName() {
    std::string& name = *spec().mutable_name();
    if (name.size() <= contract::kMaxNameBytes || !contract::IsUtf8(name)) return;
    name.resize(contract::kMaxNameBytes);
    while (!contract::IsUtf8(name)) name.pop_back();
    job_.notes.push_back(
        fmt::format("the job's name is cut to {} bytes, the most that Muster takes: {}",
                    contract::kMaxNameBytes, name));
  }

  // A path as it is seen from where the user stood.
  std::string Absolute(const std::string& path) const {
    return path.starts_with('/') ? path : fmt::format("{}/{}", place_.directory, path);
  }

  void Bad(const Setting& setting, std::string_view remedy) {
    AddUnreadable(setting, remedy, &errors_);
  }

  // An empty list makes no array, as with sbatch.
  void MapArray(const Setting* setting) {
    if (setting == nullptr || setting->value.empty()) return;
    absl::StatusOr<std::vector<contract::ArrayTask>> tasks = ParseArray(setting->value);
    if (tasks.ok()) {
      job_.tasks = *std::move(tasks);
    } else {
      Bad(*setting, ToStd(tasks.status().message()));
    }
  }

  // The tasks of an array, which have one name, are submitted together.
  void CheckSingleton(const Setting* dependency) {
    if (dependency == nullptr || job_.tasks.empty()) return;
    if (dependency->value.find("singleton") != std::string::npos)
      Bad(*dependency,
          "the tasks of an array are not kept apart by their name; leave singleton out");
  }

  void MapTime(const Setting& setting) {
    const std::optional<uint64_t> seconds = ParseSbatchTime(setting.value);
    if (!seconds.has_value()) return Bad(setting, "use minutes, H:MM:SS or D-HH:MM:SS");
    if (*seconds == 0) return AddExtra("time", "0", &spec());
    spec().mutable_time_limit()->set_seconds(static_cast<int64_t>(*seconds));
  }

  void MapEnvironment(const Settings& options) {
    TakenEnvironment taken = TakeEnvironment(options, place_.environment, &errors_);
    // The spec has one directory only, which is another one then.
    const std::string variable(contract::kSubmitDirectory);
    taken.variables.erase(variable);
    if (options.Find("chdir") != nullptr) taken.variables[variable] = place_.directory;
    if (std::string note = StaysBehind(taken, options); !note.empty())
      job_.notes.push_back(std::move(note));
    if (taken.variables.empty() && taken.login_seconds == 0) return;
    v1::ShellEnvironment& shell = *batch_script().mutable_environment();
    job_.shell_file = contract::FormatShellFile(taken.variables);
    shell.set_file_sha256(Sha256Of(job_.shell_file));
    for (const std::string& name : taken.named) shell.add_named(name);
    if (taken.login_seconds > 0) shell.mutable_login_timeout()->set_seconds(taken.login_seconds);
  }

  // Each time that it is given adds to it.
  void MapMailType(const Setting& setting) {
    const auto types = ParseMailTypes(setting.value);
    if (!types.has_value()) return Bad(setting, "use words such as BEGIN, END, FAIL or ALL");
    std::string& all = *spec().mutable_slurm()->mutable_mail_type();
    if (types->empty() && all.empty()) all = "NONE";
    if (!types->empty() && all == "NONE") all.clear();
    for (const std::string& type : *types) all += (all.empty() ? "" : ",") + type;
  }

  void MapNice(const Setting& setting) {
    const auto nice = setting.value.empty() ? std::optional<uint32_t>(100)
                                            : contract::ParseNumber<uint32_t>(setting.value);
    if (!nice.has_value()) return Bad(setting, "use 0 to 1000000; only operators may go below");
    spec().mutable_slurm()->set_nice(*nice);
  }

  // Reads the names of Muster's clusters, of which whichever starts the job first gets it.
  void MapClusters(const Setting& setting) {
    if (setting.value == "all") return;
    for (std::string_view name : Split(setting.value, ',')) {
      spec().mutable_placement()->add_clusters(std::string(name));
    }
  }

  // One is a pool of any kind of cluster; only Slurm can choose among several.
  void MapPartition(const Setting& setting) {
    const std::string& names = setting.value;
    if (names.empty()) return Bad(setting, "name a partition, or leave the option out");
    if (names.find(',') == names.npos) {
      spec().mutable_placement()->set_pool(names);
    } else {
      spec().mutable_slurm()->set_partition(names);
    }
  }

  // They exclude each other; the last one counts.
  void MapSharing(const Setting& setting) {
    v1::SlurmOptions& slurm = *spec().mutable_slurm();
    auto& extra = *slurm.mutable_extra_options();
    extra.erase(std::remove_if(extra.begin(), extra.end(),
                               [](const std::string& option) {
                                 return option == "--oversubscribe" ||
                                        option.starts_with("--exclusive=");
                               }),
                extra.end());
    const bool is_whole = setting.option->name == "exclusive" && setting.value.empty();
    slurm.set_exclusive(is_whole);
    if (!is_whole) AddExtra(setting.option->name, setting.value, &spec());
  }

  // The last one counts. A script that Slurm must not start again is not started again by Muster
  // either.
  void MapRequeue(bool may_requeue) {
    spec().mutable_slurm()->set_requeue(may_requeue);
    spec().clear_retry();
    if (!may_requeue) spec().mutable_retry()->set_max_runs(1);
  }

  // Slurm leaves out what its operators alone may set.
  void IgnorePriority() {
    job_.notes.emplace_back(
        "--priority has no effect: only operators of a cluster may set it; --nice lowers it");
  }

  void MapOpenMode(const Setting& setting) {
    const bool is_append = std::string_view("append").starts_with(setting.value);
    const bool is_truncate = std::string_view("truncate").starts_with(setting.value);
    if (setting.value.empty() || !(is_append || is_truncate)) {
      return Bad(setting, "use append or truncate");
    }
    batch_script().set_append(is_append);
  }

  // Maps options with a rule of their own; returns false if it is none of them.
  bool MapSpecial(const Setting& setting) {
    const std::string_view name = setting.option->name;
    const std::string& value = setting.value;
    if (name == "array") return true;  // MapArray
    if (name == "job-name") return spec().set_name(value), true;
    if (name == "time") return MapTime(setting), true;
    if (name == "output") return batch_script().set_output(value), true;
    if (name == "error") return batch_script().set_error(value), true;
    if (name == "input" && value == "/dev/null") return true;
    if (name == "input") return batch_script().set_input(value), true;
    if (name == "open-mode") return MapOpenMode(setting), true;
    if (name == "chdir") return spec().set_working_directory(Absolute(value)), true;
    if (name == "partition") return MapPartition(setting), true;
    if (name == "nice") return MapNice(setting), true;
    if (name == "mail-type") return MapMailType(setting), true;
    if (name == "clusters") return MapClusters(setting), true;
    if (name == "no-kill" && value == "off") return true;
    if (name == "exclusive" || name == "oversubscribe") return MapSharing(setting), true;
    if (name == "priority") return IgnorePriority(), true;
    if (name == "requeue" || name == "no-requeue") return MapRequeue(name == "requeue"), true;
    if (name == "nodelist" && value.empty())
      return Bad(setting, "name nodes, or leave it out"), true;
    return false;
  }

  void MapOne(const Setting& setting) {
    const std::string_view name = setting.option->name;
    const auto* read = std::find(kOfTheEnvironment.begin(), kOfTheEnvironment.end(), name);
    if (read != kOfTheEnvironment.end() || IsOfShape(name) || IsOfContainer(name) ||
        MapSpecial(setting))
      return;
    if (std::find(kOfTheCommand.begin(), kOfTheCommand.end(), name) != kOfTheCommand.end()) return;
    const auto* text = std::find_if(kTexts.begin(), kTexts.end(),
                                    [&](const TextOption& one) { return one.name == name; });
    if (text != kTexts.end()) return text->set(spec().mutable_slurm(), setting.value);
    if (contract::IsExtraOption(name)) return AddExtra(name, setting.value, &spec());
    const std::string value = setting.value.empty() ? "" : "=" + setting.value;
    errors_.Add(fmt::format("--{}{} ({})", name, value, setting.where), RemedyFor(name));
  }

  const SbatchPlace& place_;
  SbatchJob job_;
  contract::FieldErrors errors_;
};

}  // namespace

absl::StatusOr<SbatchJob> MapSbatch(const SbatchSubmission& submission, const SbatchPlace& place) {
  return Mapper(place).Map(submission);
}

std::string WhyRefused(const Option& option) {
  SbatchSubmission submission;
  submission.options.settings.push_back({&option, "", std::string(kCommandLine)});
  SbatchPlace place;
  place.directory = "/";
  const auto bad_request = contract::GetBadRequest(MapSbatch(submission, place).status());
  const std::string remedy(RemedyFor(option.name));
  const bool is_refused =
      bad_request.has_value() &&
      std::any_of(bad_request->field_violations().begin(), bad_request->field_violations().end(),
                  [&](const auto& violation) { return violation.description() == remedy; });
  return is_refused ? remedy : "";
}

}  // namespace muster::client::slurm
