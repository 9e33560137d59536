#include "clients/cli/submit_flags.h"

#include <fmt/format.h>

#include <string>

#include "clients/cli/options.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/secret_flags.h"
#include "contract/characters.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

void SetDialect(const std::string& name, Invocation* out) {
  if (name != "muster" && name != "sky") {
    throw CLI::ValidationError("--as",
                               fmt::format("{} is not muster or sky", contract::Quoted(name)));
  }
  out->dialect = name == "sky" ? client::Dialect::kSkyPilot : client::Dialect::kMuster;
}

void AddSpec(CLI::App* sub, Invocation* out) {
  SpecFlags& spec = out->spec;
  AddOptional(sub, "--name", "TEXT", "A name for people", &spec.name);
  AddOptional(sub, "--project", "TEXT", "The project that the job belongs to", &spec.project);
  AddRepeated(sub, "--cluster", "NAME", "The cluster to run on; several times: any of them",
              &spec.clusters);
  AddOptional(sub, "--pool", "TEXT", "The pool (Slurm: partition) to run in", &spec.pool);
  AddNumber(sub, "--nodes", 1, contract::kMaxNodes, "Nodes; the command starts once on each",
            [&spec](int64_t nodes) { spec.nodes = static_cast<uint32_t>(nodes); });
  AddOptional(sub, "--gpus", "TYPE:COUNT",
              "GPUs of each node: TYPE:COUNT, TYPE (one) or COUNT (of any type), e.g. H100:2",
              &spec.gpus);
  AddOptional(sub, "--cpus", "NUMBER", "Cores of each node", &spec.cpus);
  AddOptional(sub, "--memory", "SIZE", "Memory of each node, e.g. 16Gi; a plain number is bytes",
              &spec.memory);
  AddOptional(sub, "--time", "DURATION",
              "Time limit, e.g. 90m, 4h, 30:00 (minutes:seconds) or 1-12:00:00; a plain number is "
              "seconds",
              &spec.time);
  AddOptional(sub, "--image", "IMAGE",
              "The container image to run in, e.g. nvcr.io/nvidia/pytorch:24.10-py3", &spec.image);
  AddRepeated(sub, "--mount", "SRC:DST[:ro]",
              "A directory of the cluster to mount in the container; ro: read-only", &spec.mounts);
  AddRepeated(sub, "--env", "KEY=VALUE", "An environment variable", &spec.env);
  AddSecretUses(sub, &spec);
  AddRepeated(sub, "--label", "KEY=VALUE", "A label", &spec.labels);
  AddOptional(sub, "--workdir", "TEXT",
              "The directory to start in: one of yours by a relative path, which is uploaded, or "
              "an absolute path of the cluster, e.g. $PWD; default: an empty one of the run's own",
              &spec.workdir);
  AddNumber(sub, "--priority", -1000, 1000, "Higher starts first, -1000 to 1000",
            [&spec](int64_t priority) { spec.priority = static_cast<int32_t>(priority); });
  // A plan submits nothing, so that there is nothing to wait for or to name.
  if (sub->get_name() == "plan") return;
  AddDependenciesAndLoss(sub, &spec);
  sub->add_flag("--wait", out->wait,
                "Wait for the end; exit with 0 (succeeded), 10 (failed), 11 (canceled) or 12 "
                "(cluster failed)");
  sub->add_flag("--hold", out->hold, "Hold the job from the start, until muster release");
  AddText(sub, "--request-id", "ID",
          "A name for the request: a repeat with the same name makes no second job",
          [out](const std::string& id) { out->request_id = id; });
  sub->add_flag("--validate,--dry-run", out->validate_only, "Check only, submit nothing");
  sub->add_flag("--raw", out->raw, "Show the log's terminal escapes as they are");
}

CLI::Option* AddFile(CLI::App* sub, Invocation* out) {
  sub->add_flag(
      "--strict", out->strict,
      "Refuse fields of a SkyPilot task that have no effect here, instead of noting them");
  sub->add_option_function<std::string>(
         "--as", [out](const std::string& name) { SetDialect(name, out); },
         "Read FILE as a Muster job file (muster) or a SkyPilot task (sky); default: its fields "
         "decide")
      ->type_name("muster|sky");
  return sub
      ->add_option(
          "FILE", out->files,
          "Job files or SkyPilot tasks in YAML, or directories of them; - is standard input")
      ->type_name("")
      ->each([](const std::string& path) { CheckNotEmpty("FILE", path); });
}

}  // namespace

void AddSubmitVerbs(CLI::App* app, Invocation* out) {
  CLI::App* sub =
      AddVerb(app, out, "submit", Verb::kSubmit, "Submit the jobs of files, all or none",
              "submit --wait --time 4h job.yaml\n  muster submit sweep/ last.yaml");
  AddFile(sub, out)->required();
  AddSpec(sub, out);
  AddSpec(
      AddVerb(app, out, "run", Verb::kRun, "Submit a command: muster run [flags] -- CMD [ARG...]",
              "run --wait --gpus H100:8 -- nvidia-smi"),
      out);
}

void AddPlanVerb(CLI::App* app, Invocation* out) {
  CLI::App* sub = AddVerb(app, out, "plan", Verb::kPlan,
                          "Show whether and when a job file or a command would start, and what "
                          "would be submitted; submits nothing",
                          "plan --time 4h job.yaml");
  AddFile(sub, out);
  AddSpec(sub, out);
  sub->add_flag("--manifest", out->manifest,
                "Show all that would be submitted: the manifest, the batch script or the command; "
                "-o wide does the same, and -o json, jsonl and yaml always have it");
}

void AddFileVerbs(CLI::App* app, Invocation* out) {
  CLI::App* init = AddVerb(app, out, "init", Verb::kInit, "Write a first job file, with comments",
                           "init --kind slurm train.yaml");
  AddText(init, "FILE", "", "The new file; default: job.yaml; - is standard output",
          [out](const std::string& path) { out->files = {path}; });
  AddText(init, "--kind", "KIND", "For clusters of this kind: slurm, kubernetes or machines",
          [out](const std::string& kind) {
            if (kind != "slurm" && kind != "kubernetes" && kind != "machines") {
              throw CLI::ValidationError(
                  "--kind",
                  fmt::format("{} is not slurm, kubernetes or machines", contract::Quoted(kind)));
            }
            out->kind = kind;
          });
  init->add_flag("--force", out->force, "Replace a file that is there");
  AddVerb(app, out, "schema", Verb::kSchema, "Print the JSON Schema of job files, for editors",
          "schema >job.schema.json");
}

}  // namespace muster::cli
