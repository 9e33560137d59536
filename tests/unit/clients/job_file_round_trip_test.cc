// The spec of a job as `muster show -o json` prints it is a job file that gives the same spec.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "clients/cli/render.h"
#include "clients/cpp/jobfile.h"
#include "contract/text.h"
#include "contract/validate.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "muster/v1/job.pb.h"

namespace muster::client {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

struct KeptSpec {
  const char* name;
  const char* spec;  // in protobuf's text format
};

// Together they set every field that a spec can have.
const KeptSpec kKeptSpecs[] = {
    {"Plain", R"(
        name: "n m" project: "p-1" nodes: 3 time_limit { seconds: 5400 nanos: 10000000 }
        setup: "pip install x\n" priority: -3 preemptible: true labels { key: "team" value: "yes" }
        env { key: "NUMBER" value: "012" } env { key: "EMPTY" value: "" }
        env { key: "ODD" value: "a\tb\n\001\177\"\\<&>' \303\244 \360\237\230\200 \342\200\250 #: {~}" }
        command { script: "#!/bin/bash\necho \"$1\"\n" script_arguments: "--lr" script_arguments: "" }
        resources { cpu_millis: 2500 memory_bytes: 17179869185
                    gpus { type: "H100" count_millis: 8000 } }
        placement { clusters: "a" clusters: "b" pool: "gpu" }
        retry { max_runs: 3 on_preemption: true exclude_failed_nodes: true
                backoff { seconds: 1 nanos: 500000000 } on_failure: true
                exit_codes: 1 exit_codes: 255 }
        image: "nvcr.io/nvidia/tao:5.0" inputs { uri: "lustre:///a" path: "/b" }
        mounts { source: "/a" target: "/c" read_only: true }
        results_directory: "lustre:///results" status_json: true
        uploads { tree_sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
                  path: "src" })"},
    {"Argv", R"(
        working_directory: "/data" command { argv { args: "python" args: "" args: "0.1" } }
        resources { gpus { } })"},
    {"Roles", R"(
        nodes: 2
        roles { name: "head" nodes: 1 command { argv { args: "serve" } } leads: true }
        roles { name: "tail" first_node: 1 command { script: "echo $1" script_arguments: "x" }
                env { key: "A" value: "true" } })"},
    {"Slurm", R"(
        image: "ubuntu" command { script: "x" } time_limit { seconds: 7200 }
        slurm {
          partition: "a,b" account: "c" qos: "q" reservation: "r" constraint: "gpu&ib"
          nodelist: "n[1-2]" exclude: "n3" comment: "a: b # c" exclusive: true tasks_per_node: 4
          licenses: "matlab:2" dependency: "afterok:123" mail_type: "END,FAIL" mail_user: "ann"
          nice: 5 signal: "B:USR1@120" requeue: false gres: "nvme:1" extra_options: "--switches=1"
          timeout { seconds: 3600 }
          container { name: "c" env: "PATH" mount_home: false writable: true remap_root: true
                      entrypoint: true refresh_image: true }
        })"},
    {"BatchScript", R"(
        command { script: "#!/bin/bash\nsrun x\n" }
        slurm { batch_script { output: "%j.out" error: "%j.err" input: "in" append: true
                               environment {
            file_sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
            named: "LR" login_timeout { seconds: 8 } } } })"},
    {"Kubernetes", R"(
        command { script: "x" }
        kubernetes {
          namespace: "lab" scheduler_name: "kai" gang: KUBERNETES_GANG_POD_GROUP
          priority_class: "high" runtime_class: "nvidia" service_account: "trainer"
          node_selector { key: "zone" value: "a" }
          tolerations { key: "k" operator: "Equal" value: "v" effect: "NoSchedule" }
          required_nodes { key: "rack" operator: "In" values: "r1" values: "r2" }
          preferred_nodes { weight: 5 requirement { key: "fast" operator: "Exists" } }
          spread: KUBERNETES_SPREAD_REQUIRED
          volumes { mount_path: "/a" claim: "data" sub_path: "sets" read_only: true }
          volumes { mount_path: "/b" config_map: "c" } volumes { mount_path: "/c" secret: "s" }
          volumes { mount_path: "/d" empty_directory { in_memory: true size_bytes: 2147483648 } }
          volumes { mount_path: "/e" host_path: "/e" } volumes { mount_path: "/f" empty_directory { } }
          security_context { run_as_user: 1000 run_as_group: 1001 fs_group: 0 run_as_non_root: true
                             read_only_root: true allow_privilege_escalation: true
                             add_capabilities: "SYS_PTRACE" drop_capabilities: "ALL"
                             seccomp_runtime_default: true privileged: true }
          labels { key: "team" value: "vision" } annotations { key: "note" value: "hi" }
          termination_grace { seconds: 90 } image_pull_secrets: "pull" shm_bytes: 17179869184
          host_network: true time_to_live { seconds: 0 }
        })"},
    {"Secrets", R"(command { script: "x" } secrets { variable: "HF_TOKEN" name: "hf" }
                   secrets { variable: "KEY" name: "deploy-key" as_file: true })"},
    {"DependsOn", R"(command { script: "x" } depends_on { job_id: 12 outcome: JOB_OUTCOME_FAILED }
                     depends_on { job_id: 13 })"},
    {"OnClusterLoss",
     R"(command { script: "x" } on_cluster_loss: CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED)"},
    {"KubernetesQueue", R"(command { script: "x" } kubernetes { queue: "team" })"},
    {"EmptySections", R"(command { script: "x" } slurm { container { } } image: "ubuntu"
                         retry { } placement { } resources { })"},
};

v1::JobSpec Kept(const KeptSpec& kept) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kept.spec, &spec)) << kept.name;
  auto normal = contract::NormalizeJobSpec(spec);
  EXPECT_TRUE(normal.ok()) << kept.name << ": " << normal.status();
  return normal.ok() ? *normal : spec;
}

class JobFileFromJson : public ::testing::TestWithParam<KeptSpec> {};

void ExpectGives(const std::string& json, const v1::JobSpec& kept) {
  const auto read = ParseJobFile("job.json", json);
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << json;
  ASSERT_EQ(read->specs.size(), 1u);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(read->specs.front(), kept))
      << read->specs.front().DebugString() << "instead of\n"
      << kept.DebugString();
  EXPECT_TRUE(read->notes.empty()) << read->notes.front();
  EXPECT_TRUE(read->local_uploads.empty());
}

TEST_P(JobFileFromJson, GivesTheSpecThatWasPrinted) {
  const v1::JobSpec kept = Kept(GetParam());
  for (const std::string& json : {cli::ToJson(kept), cli::ToJsonLine(kept)})
    ExpectGives(json, kept);
}

// Writes the form that any protobuf library writes: names in camelCase, 64-bit numbers as texts.
std::string CanonicalJson(const v1::JobSpec& spec) {
  std::string json;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(spec, &json).ok());
  return json;
}

TEST_P(JobFileFromJson, GivesTheSpecThatAProtobufLibraryPrinted) {
  const v1::JobSpec kept = Kept(GetParam());
  ExpectGives(CanonicalJson(kept), kept);
}

INSTANTIATE_TEST_SUITE_P(Specs, JobFileFromJson, ::testing::ValuesIn(kKeptSpecs),
                         [](const auto& info) { return info.param.name; });

// Adds "muster.v1.JobSpec.nodes" and so on, of the message and all within it.
void AddSetFields(const Message& message, std::set<std::string>* names) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    names->insert(field->full_name());
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    const auto& values = *message.GetReflection();
    if (!field->is_repeated()) {
      AddSetFields(values.GetMessage(message, field), names);
      continue;
    }
    for (int i = 0; i < values.FieldSize(message, field); ++i)
      AddSetFields(values.GetRepeatedMessage(message, field, i), names);
  }
}

void AddAllFields(const Descriptor& type, std::set<std::string>* names) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!names->insert(field.full_name()).second) continue;
    const bool has_fields = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                            !field.is_map() && field.message_type()->file() == type.file();
    if (has_fields) AddAllFields(*field.message_type(), names);
  }
}

TEST(JobFileFromJson, IsTestedWithEveryField) {
  std::set<std::string> set;
  for (const KeptSpec& kept : kKeptSpecs) AddSetFields(Kept(kept), &set);
  std::set<std::string> all;
  AddAllFields(*v1::JobSpec::descriptor(), &all);
  for (const std::string& name : all) EXPECT_TRUE(set.contains(name)) << name;
}

TEST(JobFileFromJson, OfAWholeJobItSaysWhatToSubmit) {
  v1::Job job;
  job.set_id(1);
  *job.mutable_spec() = Kept(kKeptSpecs[0]);
  const auto read = ParseJobFile("job.json", cli::ToJson(job),
                                 {.strict = false, .dialect = Dialect::kMuster, .env = {}});
  ASSERT_FALSE(read.ok());
  EXPECT_NE(ToStd(read.status().message()).find("jq .spec"), std::string::npos) << read.status();
}

TEST(JobFileFromJson, RefusesAFieldThatIsGivenInBothForms) {
  for (const char* file :
       {"run: x\nresources: {cpus: 1, cpu_millis: 1000}",
        "run: x\nresources: {memory: 1Gi, memory_bytes: 1073741824}",
        "run: x\nresources: {cpus: 1, cpuMillis: 1000}",
        "run: x\nresources: {cpu_millis: 1000, cpuMillis: 1000}",
        "run: x\nslurm: {mailUser: ann, mail_user: ann}", "run: x\ntime: 1h\ntimeLimit: 1h",
        "command: {script: x, script_arguments: [a]}\narguments: [b]",
        "command: {script: x, argv: {args: [y]}}"}) {
    EXPECT_FALSE(ParseJobFile("t.yaml", file).ok()) << file;
  }
}

TEST(JobFileFromJson, NamesTheFieldAndItsPlaceWhereAnotherFormIsWrong) {
  const auto error = [](const char* file) {
    return std::string(ToStd(ParseJobFile("t.yaml", file).status().message()));
  };
  EXPECT_EQ(error("{\"run\": \"x\",\n \"resources\": {\"cpuMillis\": \"many\"}}").substr(0, 38),
            "t.yaml:2:29: resources.cpu_millis: exp");
  EXPECT_EQ(error("run: x\nslurm:\n  mailUser: a b").substr(0, 30),
            "t.yaml:3:13: slurm.mail_user: ");
  EXPECT_EQ(
      error("run: x\nresources:\n  cpu_millis: 1\n  cpuMillis: 1"),
      "t.yaml:4:3: resources.cpuMillis: means the same as \"cpu_millis\", which is given too");
}

}  // namespace
}  // namespace muster::client
