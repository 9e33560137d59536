#include "clients/cpp/jobfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "clients/cpp/depends_on.h"
#include "clients/cpp/dialect.h"
#include "clients/cpp/job_file_fields.h"
#include "clients/cpp/local_upload.h"
#include "clients/cpp/message_reader.h"
#include "clients/cpp/skypilot/task_file.h"
#include "clients/cpp/spec_check.h"
#include "clients/cpp/two_readings.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/text.h"
#include "contract/units.h"
#include "daemon/read_file.h"

namespace muster::client {
namespace {

// Names that people write who come from elsewhere.
const std::map<std::string_view, std::string_view> kJobFileHints = {
    {"cpus", "write it under resources, as in resources: {cpus: 4}"},
    {"cpu", "write resources: {cpus: 4}"},
    {"memory", "write it under resources, as in resources: {memory: 16Gi}"},
    {"mem", "write resources: {memory: 16Gi}"},
    {"gpus", "write it under resources, as in resources: {gpus: H100:8}"},
    {"gpu", "write resources: {gpus: H100:8}"},
    {"accelerators", "write resources: {gpus: H100:8}"},
    {"num_nodes", "write nodes"},
    {"partition", "write pool, or slurm: {partition: NAME}"},
    {"script", "write run"},
    {"args",
     "write those of the script under arguments; a program and its own are one list under command"},
    {"envs", "write env"},
    {"environment", "write env"},
    {"timeout", "write time"},
    {"spec", "this is a whole job; submit what is under spec: muster show -o json ID | jq .spec"},
    {"dependencies", "write depends_on"},
    {"dependency", "write depends_on"},
    {"after", "write depends_on"},
    {"<<", "YAML merge keys are not read; repeat the fields"},
};

// These are the same under resources: a SkyPilot task's, in a file that is a job file by its other
// fields.
const std::map<std::string_view, std::string_view> kResourcesHints = {
    {"accelerators", "write gpus, as in gpus: H100:8"},
    {"image_id", "write image at the top"},
    {"infra", "write cluster: NAME at the top"},
    {"labels", "write it at the top"},
    {"priority", "write it at the top"},
};

// The fields that people write otherwise than the API has them. The API's own form is read as well,
// so that the spec of `muster show -o json` is a job file. Every other field is read as the API has
// it.
class SpecReader {
 public:
  // `earlier` are the jobs of the documents before this one.
  SpecReader(YamlReader* in, const std::vector<v1::JobSpec>& earlier, v1::JobSpec* spec,
             std::vector<LocalUpload>* uploads)
      : in_(*in), earlier_(earlier), job_(earlier.size()), spec_(*spec), uploads_(*uploads) {}

  void Read(const YamlValue& document) {
    if (RefuseWholeJob(document)) return;
    const MessageReader reader(
        &in_,
        {
            {"muster.v1.JobSpec.time_limit",
             {WrittenNames("muster.v1.JobSpec.time_limit"),
              [this](const YamlValue& v) { Time(v); }}},
            {"muster.v1.JobSpec.command",
             {WrittenNames("muster.v1.JobSpec.command"),
              [this](const YamlValue& v) { Command(v, "command", spec_.mutable_command()); }}},
            {"muster.v1.JobSpec.roles",
             {WrittenNames("muster.v1.JobSpec.roles"), [this](const YamlValue& v) { Roles(v); }}},
            {"muster.v1.SlurmOptions.timeout",
             {WrittenNames("muster.v1.SlurmOptions.timeout"),
              [this](const YamlValue& v) { Timeout(v); }}},
            {"muster.v1.JobSpec.working_directory",
             {WrittenNames("muster.v1.JobSpec.working_directory"),
              [this](const YamlValue& v) { WorkingDirectory(v); }}},
            {"muster.v1.JobSpec.resources",
             {WrittenNames("muster.v1.JobSpec.resources"),
              [&](const YamlValue& v) {
                reader.Read(v, spec_.mutable_resources(), {}, kResourcesHints);
              }}},
            {"muster.v1.JobSpec.depends_on",
             {WrittenNames("muster.v1.JobSpec.depends_on"),
              [this](const YamlValue& v) { ReadDependsOn(&in_, v, earlier_, &spec_); }}},
            {"muster.v1.JobSpec.secrets",
             {WrittenNames("muster.v1.JobSpec.secrets"),
              [this](const YamlValue& v) { Secrets(v); }}},
            {"muster.v1.Resources.cpu_millis",
             {WrittenNames("muster.v1.Resources.cpu_millis"),
              [this](const YamlValue& v) { Cpus(v); }}},
            {"muster.v1.Resources.memory_bytes",
             {WrittenNames("muster.v1.Resources.memory_bytes"),
              [this](const YamlValue& v) { Memory(v); }}},
            {"muster.v1.Resources.gpus",
             {WrittenNames("muster.v1.Resources.gpus"), [this](const YamlValue& v) { Gpus(v); }}},
        });
    reader.Read(
        document, &spec_,
        {{WrittenNames("muster.v1.JobSpec.arguments"),
          [this](const YamlValue& v) { Arguments(v, "command", spec_.mutable_command()); }},
         {WrittenNames("muster.v1.JobSpec.cluster"), [this](const YamlValue& v) { Cluster(v); }},
         {WrittenNames("muster.v1.JobSpec.pool"), [this](const YamlValue& v) { Pool(v); }},
         {WrittenNames("muster.v1.JobSpec.file_mounts"),
          [this](const YamlValue& v) { FileMounts(v); }},
         NotYet("array",
                "submit a job for each task, as documents of one file with --- between "
                "them; muster sbatch --array does it for a batch script"),
         NotYet("outputs", "let the command write to results_directory")},
        kJobFileHints);
    // These come after uploads that the file names itself.
    for (auto& [value, upload] : local_) {
      in_.StandsFor(value, fmt::format("uploads[{}]", spec_.uploads_size()));
      AddLocalUpload(job_, upload.source, upload.target, &spec_, &uploads_);
    }
  }

 private:
  // Muster's own output of a job is no job file. False: the document is something else.
  bool RefuseWholeJob(const YamlValue& document) {
    const YAML::Node& node = document.node;
    if (!node.IsMap() || !node["spec"].IsDefined() || !node["id"].IsDefined()) return false;
    in_.Problem({node["spec"], "spec"}, std::string(kJobFileHints.at("spec")));
    return true;
  }

  void Time(const YamlValue& value) {
    in_.StandsFor(value, "time_limit");
    Duration(value, spec_.mutable_time_limit());
  }

  // Makes a field that people look for and that is not built yet. No guess is made at its inner
  // fields.
  YamlReader::Field NotYet(const char* name, const char* remedy) {
    return {.names = name,
            .read =
                [this, name, remedy](const YamlValue& value) {
                  in_.Problem(value, fmt::format("Muster has no {} yet; {}", name, remedy));
                },
            .is_listed = false};
  }

  void Timeout(const YamlValue& value) {
    in_.StandsFor(value, "slurm.timeout");
    Duration(value, spec_.mutable_slurm()->mutable_timeout());
  }

  void Duration(const YamlValue& value, google::protobuf::Duration* out) {
    in_.Parsed(value, contract::ParseDuration, [out](absl::Duration duration) {
      out->set_seconds(absl::ToInt64Seconds(duration));
      const absl::Duration rest = duration - absl::Seconds(out->seconds());
      out->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(rest)));
    });
  }

  // `run: |` is a script, `command: [...]` a program with its arguments, and `command: {...}`
  // either of them as the API has it. `field`: what the API calls it.
  void Command(const YamlValue& value, const std::string& field, v1::Command* command) {
    const bool is_script = value.path.ends_with("run");
    in_.StandsFor(value, field);
    if (is_script) {
      in_.Text(value, command->mutable_script());
      return;
    }
    if (value.node.IsMap()) return MessageReader(&in_, {}).Read(value, command);
    if (value.node.IsScalar()) {
      in_.Problem(value,
                  "expected a list such as [python, train.py]; a shell script goes under run");
      return;
    }
    in_.StandsFor(value, field + ".argv");
    Words(value, field + ".argv.args", command->mutable_argv()->mutable_args());
  }

  // Reads the arguments of the script under `run`.
  void Arguments(const YamlValue& value, const std::string& field, v1::Command* command) {
    if (command->script_arguments_size() > 0) {
      return in_.Problem(value, "command.script_arguments is given too; keep one of them");
    }
    in_.StandsFor(value, field + ".script_arguments");
    Words(value, field + ".script_arguments", command->mutable_script_arguments());
  }

  void Words(const YamlValue& value, const std::string& field,
             google::protobuf::RepeatedPtrField<std::string>* words) {
    in_.List(value, [&](const YamlValue& item) {
      in_.StandsFor(item, fmt::format("{}[{}]", field, words->size()));
      in_.Text(item, words->Add());
    });
  }

  void Roles(const YamlValue& value) {
    in_.List(value, [this](const YamlValue& item) {
      const std::string field = fmt::format("roles[{}].command", spec_.roles_size());
      v1::Role* role = spec_.add_roles();
      const MessageReader reader(
          &in_, {{"muster.v1.Role.command",
                  {WrittenNames("muster.v1.Role.command"),
                   [&](const YamlValue& v) { Command(v, field, role->mutable_command()); }}}});
      reader.Read(item, role, {{WrittenNames("muster.v1.Role.arguments"), [&](const YamlValue& v) {
                                  Arguments(v, field, role->mutable_command());
                                }}});
    });
  }

  // Reads `VARIABLE: NAME`, or `VARIABLE: {file: NAME}` for the path of a file; or a list as the
  // API has it.
  void Secrets(const YamlValue& value) {
    if (value.node.IsSequence()) {
      in_.List(value, [this](const YamlValue& item) {
        MessageReader(&in_, {}).Read(item, spec_.add_secrets());
      });
      return;
    }
    in_.Entries(value, [this](const std::string& variable, const YamlValue& inner) {
      const std::string field = fmt::format("secrets[{}]", spec_.secrets_size());
      v1::SecretUse* use = spec_.add_secrets();
      use->set_variable(variable);
      in_.StandsFor(inner, field + ".variable");
      in_.StandsFor(inner, field + ".name");
      if (!inner.node.IsMap()) {
        in_.Text(inner, use->mutable_name());
        return;
      }
      use->set_as_file(true);
      in_.Mapping(inner, {{"file", [&](const YamlValue& v) {
                             in_.StandsFor(v, field + ".name");
                             in_.Text(v, use->mutable_name());
                           }}});
    });
  }

  void WorkingDirectory(const YamlValue& value) {
    in_.StandsFor(value, "working_directory");
    std::string path;
    if (!in_.Text(value, &path)) return;
    if (path.empty() || path.starts_with('/')) {
      spec_.set_working_directory(path);
    } else {
      local_.push_back({value, {.source = path, .target = ""}});
    }
  }

  // Reads files of this machine by their places in the run's working directory.
  void FileMounts(const YamlValue& value) {
    in_.Entries(value, [this](const std::string& key, const YamlValue& inner) {
      const absl::StatusOr<std::string> target = UploadTarget(key);
      std::string source;
      if (!target.ok()) return in_.ProblemOf(inner, target.status());
      if (!in_.Text(inner, &source)) return;
      if (source.find("://") != source.npos) {
        return in_.Problem(inner,
                           "data of the cluster goes under inputs, as in inputs: [{uri: "
                           "lustre:///PATH}]; here are files of this machine");
      }
      local_.push_back({inner, {.source = source, .target = *target}});
    });
  }

  void Cpus(const YamlValue& value) {
    in_.StandsFor(value, "resources.cpu_millis");
    if (value.path.ends_with("_millis")) {
      int64_t millis = 0;
      if (!in_.Integer(value, 0, std::numeric_limits<int64_t>::max(), &millis)) return;
      spec_.mutable_resources()->set_cpu_millis(static_cast<uint64_t>(millis));
      return;
    }
    in_.Parsed(value, contract::ParseCpus,
               [this](uint64_t millis) { spec_.mutable_resources()->set_cpu_millis(millis); });
  }

  void Memory(const YamlValue& value) {
    in_.StandsFor(value, "resources.memory_bytes");
    in_.Parsed(value, contract::ParseBytes,
               [this](uint64_t bytes) { spec_.mutable_resources()->set_memory_bytes(bytes); });
  }

  // Reads one request, or a list of them.
  void Gpus(const YamlValue& value) {
    if (value.node.IsSequence()) {
      in_.List(value, [this](const YamlValue& item) { Gpus(item); });
      return;
    }
    if (value.node.IsMap()) {
      return MessageReader(&in_, {}).Read(value, spec_.mutable_resources()->add_gpus());
    }
    in_.Parsed(value, contract::ParseGpus, [this](const v1::GpuRequest& gpus) {
      *spec_.mutable_resources()->add_gpus() = gpus;
    });
  }

  // Is short for placement.clusters with one name.
  void Cluster(const YamlValue& value) {
    if (spec_.placement().clusters_size() > 0) {
      in_.Problem(value, "placement.clusters is given too; keep one of them");
      return;
    }
    in_.StandsFor(value, "placement.clusters");
    in_.Text(value, spec_.mutable_placement()->add_clusters());
  }

  // Is short for placement.pool.
  void Pool(const YamlValue& value) {
    if (!spec_.placement().pool().empty()) {
      in_.Problem(value, "placement.pool is given too; keep one of them");
      return;
    }
    in_.StandsFor(value, "placement.pool");
    in_.Text(value, spec_.mutable_placement()->mutable_pool());
  }

  struct Local {
    YamlValue value;
    LocalUpload upload;
  };

  YamlReader& in_;
  const std::vector<v1::JobSpec>& earlier_;
  const size_t job_;
  v1::JobSpec& spec_;
  std::vector<LocalUpload>& uploads_;
  std::vector<Local> local_;
};

void ReadSpec(YamlReader* in, const YAML::Node& document, JobFile* jobs) {
  v1::JobSpec spec;
  const YamlValue root{document, ""};
  in->StandsFor(root, "");
  SpecReader(in, jobs->specs, &spec, &jobs->local_uploads).Read(root);
  jobs->specs.push_back(std::move(spec));
}

absl::StatusOr<JobFile> ReadMusterJobs(std::string_view file, std::string_view text,
                                       const std::vector<YAML::Node>& documents) {
  JobFile jobs;
  YamlReader in(file, text);
  for (const YAML::Node& document : documents) {
    if (document.IsNull()) continue;
    if (jobs.specs.size() == kMaxJobsInFile) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: more than {} jobs in a file; submit several files", file,
                      document.Mark().line + 1, kMaxJobsInFile));
    }
    in.BeginDocument();
    ReadSpec(&in, document, &jobs);
    CheckSpec(jobs.specs.back(), &in);
    jobs.places.Add(in.Places());
  }
  if (!in.status().ok()) return in.status();
  if (jobs.specs.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: holds no job; the shortest is `run: echo hello`", file));
  }
  return jobs;
}

absl::StatusOr<JobFile> ReadAs(Dialect dialect, std::string_view file, std::string_view text,
                               const std::vector<YAML::Node>& documents,
                               const JobFileOptions& options) {
  return dialect == Dialect::kSkyPilot ? skypilot::ReadTasks(file, text, documents, options)
                                       : ReadMusterJobs(file, text, documents);
}

// Reads each document as if it were alone in its file, because SkyPilot makes a chain of several.
// Returns nothing if one of them would be refused.
std::optional<std::vector<v1::JobSpec>> ReadEachAs(Dialect dialect, std::string_view file,
                                                   std::string_view text,
                                                   const std::vector<YAML::Node>& documents,
                                                   const JobFileOptions& options) {
  std::vector<v1::JobSpec> specs;
  for (const YAML::Node& document : documents) {
    if (document.IsNull()) continue;
    auto read = ReadAs(dialect, file, text, {document}, options);
    if (!read.ok()) return std::nullopt;
    specs.push_back(std::move(read->specs.front()));
  }
  return specs;
}

// Returns the jobs, or the error, with the remark about the other reading.
absl::StatusOr<JobFile> WithRemark(absl::StatusOr<JobFile> read, Dialect read_as,
                                   std::string_view file, std::string_view text,
                                   const std::vector<YAML::Node>& documents,
                                   const JobFileOptions& options) {
  const bool is_ours = read_as == Dialect::kMuster;
  const auto other =
      ReadEachAs(is_ours ? Dialect::kSkyPilot : Dialect::kMuster, file, text, documents, options);
  if (!other.has_value() || other->empty()) return read;
  if (!read.ok()) {
    if (other->size() > 1) return read;
    return absl::Status(read.status().code(), fmt::format("{}\n{}", ToStd(read.status().message()),
                                                          OtherReadingHint(file, read_as)));
  }
  const std::vector<std::string> differences =
      is_ours ? Differences(read->specs, *other) : Differences(*other, read->specs);
  if (!differences.empty()) read->notes.push_back(ReadingRemark(file, read_as, differences));
  return read;
}

}  // namespace

std::string FieldPlaces::Find(size_t job, std::string_view api_path) const {
  if (job >= jobs_.size()) return "";
  // A field inside of a list or a map may be known by what holds it only.
  auto place = jobs_[job].find(api_path);
  while (place == jobs_[job].end() && api_path.find_last_of(".[") != std::string_view::npos) {
    api_path = api_path.substr(0, api_path.find_last_of(".["));
    place = jobs_[job].find(api_path);
  }
  return place == jobs_[job].end() ? "" : place->second;
}

absl::StatusOr<JobFile> ParseJobFile(std::string_view file, std::string_view text,
                                     const JobFileOptions& options) {
  absl::StatusOr<std::vector<YAML::Node>> documents = LoadYaml(file, text, kMaxJobFileBytes);
  if (!documents.ok()) return documents.status();
  if (options.dialect) return ReadAs(*options.dialect, file, text, *documents, options);
  const FoundDialect found = DialectOf(*documents);
  auto jobs = ReadAs(found.dialect, file, text, *documents, options);
  if (found.is_told) return jobs;
  return WithRemark(std::move(jobs), found.dialect, file, text, *documents, options);
}

bool IsYamlStructure(std::string_view text) {
  const auto documents = LoadYaml("", text, kMaxJobFileBytes);
  return documents.ok() &&
         std::any_of(documents->begin(), documents->end(), [](const YAML::Node& document) {
           return document.IsMap() || document.IsSequence();
         });
}

absl::StatusOr<JobFile> ReadJobFile(const std::string& path, const JobFileOptions& options) {
  absl::StatusOr<std::string> text = ReadFile(path, kMaxJobFileBytes);
  if (!text.ok()) return text.status();
  return ParseJobFile(path == "-" ? "<stdin>" : path, *text, options);
}

}  // namespace muster::client
