#include "clients/cpp/skypilot/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "clients/cpp/skypilot/envs.h"
#include "clients/cpp/skypilot/files.h"
#include "clients/cpp/skypilot/resources.h"
#include "clients/cpp/skypilot/values.h"
#include "clients/cpp/skypilot/variables.h"
#include "contract/characters.h"
#include "contract/task_script.h"
#include "contract/validate.h"

namespace muster::client::skypilot {
namespace {

// Names that people write at the top who have seen them elsewhere.
const std::map<std::string_view, std::string_view> kHints = {
    {"accelerators", "write it under resources, as in resources: {accelerators: H100:8}"},
    {"cpus", "write it under resources"},
    {"memory", "write it under resources"},
    {"infra", "write it under resources"},
    {"autostop", "write it under resources"},
    {"job_recovery", "write it under resources"},
    {"any_of", "write it under resources"},
    {"environment", "write envs"},
    {"experimental", "SkyPilot has it no more; write config"},
};

class TaskReader {
 public:
  TaskReader(YamlReader* in, Ignored* ignored, const JobFileOptions& options, size_t job,
             JobFile* file)
      : in_(*in),
        ignored_(*ignored),
        options_(options),
        given_(options.env),
        job_(job),
        uploads_(file->local_uploads),
        secrets_(file->local_secrets) {}

  std::vector<v1::JobSpec> Read(const YAML::Node& document) {
    const YamlValue root{document, ""};
    in_.StandsFor(root, "");
    // The order matters: paths hold variables, and mounts are those of a container.
    const std::vector<YamlReader::Field> fields = {
        {"envs", [this](const YamlValue& v) { ReadEnvs(in_, ignored_, v, given_, &spec_); }},
        Given("secrets",
              [this](const YamlValue& v) {
                ReadSecrets(in_, ignored_, v, options_, job_, &spec_, &secrets_);
              }),
        Given("name", [this](const YamlValue& v) { Name(v); }),
        Given("num_nodes", [this](const YamlValue& v) { Nodes(v); }),
        Given("setup", [this](const YamlValue& v) { Setup(v); }),
        Given("run", [this](const YamlValue& v) { Run(v); }),
        Given("resources", [this](const YamlValue& v) { Resources(v); }),
        Given(
            "workdir",
            [this](const YamlValue& v) { ReadWorkdir(in_, Known(), v, job_, &spec_, &uploads_); }),
        Given("file_mounts",
              [this](const YamlValue& v) {
                ReadFileMounts(in_, Known(), v, job_, HasImage(), &spec_, &uploads_);
              }),
        Given("volumes", [this](const YamlValue& v) { RefuseVolumes(in_, v); }),
        Meaningless("service"),
        Meaningless("pool"),
        Meaningless("config"),
        Meaningless("event_callback"),
        Meaningless("inputs"),
        Meaningless("outputs")};
    in_.Mapping(root, fields, kHints);
    AddGivenSecrets(options_, job_, &spec_, &secrets_);
    Command();
    return Alternatives();
  }

 private:
  using ReadValue = std::function<void(const YamlValue&)>;

  // A null is as good as nothing.
  static YamlReader::Field Given(const std::string& name, const ReadValue& read) {
    return {name, [read](const YamlValue& value) {
              if (!value.node.IsNull()) read(value);
            }};
  }

  YamlReader::Field Meaningless(const std::string& name) {
    return {name, [this](const YamlValue& value) { ignored_.Field(in_, value); }};
  }

  void Name(const YamlValue& value) {
    std::string name;
    if (!ReadText(in_, value, &name)) return;
    spec_.set_name(name);
    if (IsTaskName(name)) return;
    in_.Problem(value, fmt::format("{} cannot name a task; use letters and digits, with '.', '_' "
                                   "or '-' between them",
                                   contract::Quoted(name)));
  }

  void Nodes(const YamlValue& value) {
    int64_t nodes = 0;
    in_.StandsFor(value, "nodes");
    if (ReadInteger(in_, value, 1, contract::kMaxNodes, &nodes)) {
      spec_.set_nodes(static_cast<uint32_t>(nodes));
    }
  }

  // SkyPilot runs both with bash, whatever they begin with.
  void Setup(const YamlValue& value) {
    std::string text;
    if (ReadText(in_, value, &text) && !text.empty()) spec_.set_setup(BashScript(text));
  }

  void Run(const YamlValue& value) {
    std::string text;
    in_.StandsFor(value, "command");
    if (!ReadText(in_, value, &text) || text.empty()) return;
    spec_.mutable_command()->set_script(BashScript(text));
  }

  // A task may be all setup.
  void Command() {
    if (spec_.has_command() || !in_.status().ok()) return;
    if (spec_.setup().empty()) return in_.ProblemAt("", "has neither run nor setup; add a run");
    spec_.mutable_command()->mutable_argv()->add_args("true");
  }

  void Resources(const YamlValue& value) {
    in_.StandsFor(value, "resources");
    resources_ = ReadResources(in_, ignored_, value);
  }

  // Tells whether each of the alternatives has an image.
  bool HasImage() const {
    return !resources_.empty() &&
           std::all_of(resources_.begin(), resources_.end(),
                       [](const v1::JobSpec& one) { return !one.image().empty(); });
  }

  // Returns the task with each of its resources.
  std::vector<v1::JobSpec> Alternatives() const {
    if (resources_.empty()) return {spec_};
    std::vector<v1::JobSpec> alternatives;
    for (const v1::JobSpec& one : resources_) alternatives.emplace_back(spec_).MergeFrom(one);
    return alternatives;
  }

  Variables Known() const {
    Variables variables(spec_.env().begin(), spec_.env().end());
    variables.insert(given_.begin(), given_.end());
    return variables;
  }

  YamlReader& in_;
  Ignored& ignored_;
  const JobFileOptions& options_;
  const std::map<std::string, std::string>& given_;
  const size_t job_;
  std::vector<LocalUpload>& uploads_;
  std::vector<LocalSecret>& secrets_;
  std::vector<v1::JobSpec> resources_;  // alternatives
  v1::JobSpec spec_;                    // what they have in common
};

}  // namespace

std::string BashScript(std::string_view text) {
  return fmt::format("{}{}", contract::kTaskScriptPreamble, text);
}

std::vector<v1::JobSpec> ReadTask(YamlReader& in, Ignored& ignored, const YAML::Node& document,
                                  const JobFileOptions& options, size_t job, JobFile* file) {
  return TaskReader(&in, &ignored, options, job, file).Read(document);
}

}  // namespace muster::client::skypilot
