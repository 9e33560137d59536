#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "clients/cpp/jobfile.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/text.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace muster::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string StatusText(const absl::Status& status) { return std::string(ToStd(status.message())); }

std::string Parse(std::string_view yaml) {
  const auto specs = ParseJobFile("t.yaml", yaml);
  if (!specs.ok()) return StatusText(specs.status());
  std::string text;
  for (const v1::JobSpec& spec : specs->specs) text += spec.ShortDebugString() + "\n";
  return text;
}

v1::JobSpec SpecFrom(const std::string& text) {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

struct GoodFile {
  const char* name;
  const char* yaml;
  const char* spec;  // in protobuf's text format
};

class GoodJobFile : public ::testing::TestWithParam<GoodFile> {};

TEST_P(GoodJobFile, GivesTheSpecThatItDescribes) {
  const auto specs = ParseJobFile("t.yaml", GetParam().yaml);
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->specs.size(), 1u);
  const v1::JobSpec expected = SpecFrom(GetParam().spec);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(specs->specs.front(), expected))
      << specs->specs.front().DebugString() << "instead of\n"
      << expected.DebugString();
}

INSTANTIATE_TEST_SUITE_P(
    Forms, GoodJobFile,
    ::testing::Values(
        GoodFile{"Shortest", "run: echo hello", "command { script: 'echo hello' }"},
        GoodFile{"ScriptWithArguments", "run: echo $2\narguments: [--lr, 0.1]",
                 "command { script: 'echo $2' script_arguments: ['--lr', '0.1'] }"},
        GoodFile{"Roles",
                 "nodes: 2\nroles:\n"
                 "- {name: head, nodes: 1, command: [serve, -v], leads: true}\n"
                 "- {name: tail, first_node: 1, run: echo $1, arguments: [x], env: {A: b}}",
                 "nodes: 2 roles { name: 'head' nodes: 1 command { argv { args: ['serve', '-v'] } "
                 "} leads: true } roles { name: 'tail' first_node: 1 command { script: 'echo $1' "
                 "script_arguments: 'x' } env { key: 'A' value: 'b' } }"},
        GoodFile{"BatchScriptWithTimeout",
                 "run: srun hostname\nslurm: {timeout: 3.8h, batch_script: {output: '%j.out'}}",
                 "command { script: 'srun hostname' } slurm { timeout { seconds: 13680 } "
                 "batch_script { output: '%j.out' } }"},
        GoodFile{"Argv", "command: [python, train.py, --lr, 0.1, '']",
                 "command { argv { args: ['python', 'train.py', '--lr', '0.1', ''] } }"},
        GoodFile{"Script", "run: |\n  #!/bin/bash\n  echo a\nsetup: pip install x\n",
                 "command { script: '#!/bin/bash\\necho a\\n' } setup: 'pip install x'"},
        GoodFile{"Resources",
                 "run: x\nresources: {cpus: 0.5, memory: 16Gi, gpus: H100:8}\nnodes: 2",
                 "command { script: 'x' } nodes: 2 resources { cpu_millis: 500 "
                 "memory_bytes: 17179869184 gpus { type: 'H100' count_millis: 8000 } }"},
        GoodFile{"Retry", "run: x\nretry: {max_runs: 3, backoff: 1m30s, on_preemption: true}",
                 "command { script: 'x' } "
                 "retry { max_runs: 3 on_preemption: true backoff { seconds: 90 } }"},
        GoodFile{"GpuCountAlone", "run: x\nresources: {gpus: 2}",
                 "command { script: 'x' } resources { gpus { count_millis: 2000 } }"},
        GoodFile{"GpuList", "run: x\nresources: {gpus: [a100:1]}",
                 "command { script: 'x' } resources { gpus { type: 'a100' count_millis: 1000 } }"},
        GoodFile{"TimeInHours", "run: x\ntime: 3.8h",
                 "command { script: 'x' } time_limit { seconds: 13680 }"},
        GoodFile{"TimeAsSlurmHasIt", "run: x\ntime_limit: 1-12:00:00",
                 "command { script: 'x' } time_limit { seconds: 129600 }"},
        // YAML 1.1 would make numbers and truths of these; here a text is what is written.
        GoodFile{"TextsAsWritten", "run: x\nenv: {A: yes, B: 012, C: 1e3, D: ~x, E: ''}",
                 "command { script: 'x' } env { key: 'A' value: 'yes' } "
                 "env { key: 'B' value: '012' } env { key: 'C' value: '1e3' } "
                 "env { key: 'D' value: '~x' } env { key: 'E' value: '' }"},
        GoodFile{"Identity",
                 "run: x\nname: \"n m\"\nproject: p-1\nlabels: {team: vision}\npriority: "
                 "-3\npreemptible: true",
                 "command { script: 'x' } name: 'n m' project: 'p-1' "
                 "labels { key: 'team' value: 'vision' } priority: -3 preemptible: true"},
        GoodFile{"WorkingDirectory", "run: x\nworkdir: /data",
                 "command { script: 'x' } working_directory: '/data'"},
        GoodFile{"WorkingDirectoryInFull", "run: x\nworking_directory: /data",
                 "command { script: 'x' } working_directory: '/data'"},
        GoodFile{"PlacementInFull", "run: x\nplacement: {clusters: [a, b], pool: gpu}",
                 "command { script: 'x' } placement { clusters: ['a', 'b'] pool: 'gpu' }"},
        GoodFile{"PlacementInShort", "run: x\ncluster: a\npool: gpu",
                 "command { script: 'x' } placement { clusters: 'a' pool: 'gpu' }"},
        GoodFile{"Enum", "run: x\nkubernetes: {gang: volcano}",
                 "command { script: 'x' } kubernetes { gang: KUBERNETES_GANG_VOLCANO }"},
        GoodFile{
            "Slurm", "run: x\nslurm: {partition: 'a,b', exclusive: true, tasks_per_node: 4}",
            "command { script: 'x' } slurm { partition: 'a,b' exclusive: true tasks_per_node: 4 }"},
        GoodFile{"DependsOnOneJob", "run: x\ndepends_on: 12",
                 "command { script: 'x' } depends_on { job_id: 12 }"},
        GoodFile{"DependsOnSeveral",
                 "run: x\ndepends_on: [12, {job: 13, outcome: ended}, {job_id: '14', outcome: "
                 "JOB_OUTCOME_FAILED}]",
                 "command { script: 'x' } depends_on { job_id: 12 } "
                 "depends_on { job_id: 13 outcome: JOB_OUTCOME_ENDED } "
                 "depends_on { job_id: 14 outcome: JOB_OUTCOME_FAILED }"},
        GoodFile{"Anchors", "env: &e {A: 1}\nlabels: {a: &v x, b: *v}\nrun: x",
                 "command { script: 'x' } env { key: 'A' value: '1' } "
                 "labels { key: 'a' value: 'x' } labels { key: 'b' value: 'x' }"},
        GoodFile{"MessagesOfTheApiByTheirNames",
                 "run: x\nimage: ubuntu\ninputs: [{uri: 'lustre:///a', path: /b}]\n"
                 "mounts: [{source: /a, target: /c, read_only: true}]\nretry: {max_runs: 2}\n"
                 "kubernetes: {namespace: n}",
                 "command { script: 'x' } image: 'ubuntu' "
                 "inputs { uri: 'lustre:///a' path: '/b' } mounts { source: '/a' target: '/c' "
                 "read_only: true } "
                 "retry { max_runs: 2 } kubernetes { namespace: 'n' }"}),
    [](const auto& info) { return info.param.name; });

struct BadFile {
  const char* name;
  const char* yaml;
  const char* at;    // how the message begins
  const char* says;  // and what it holds
};

class BadJobFile : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadJobFile, IsRefusedAtItsPlaceWithWhatWouldWork) {
  const auto specs = ParseJobFile("t.yaml", GetParam().yaml);
  ASSERT_FALSE(specs.ok());
  EXPECT_TRUE(absl::IsInvalidArgument(specs.status()));
  EXPECT_THAT(StatusText(specs.status()), StartsWith(GetParam().at));
  EXPECT_THAT(StatusText(specs.status()), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadJobFile,
    ::testing::Values(
        BadFile{"UnknownField", "run: x\nnaem: a", "t.yaml:2:1: naem: no such field",
                "did you mean \"name\"?"},
        BadFile{"UnknownFieldInside", "run: x\nresources:\n  cpuss: 2",
                "t.yaml:3:3: resources.cpuss: no such field", "did you mean \"cpus\"?"},
        BadFile{"UnknownFieldLikeNone", "run: x\nresources: {zzzz: 2}",
                "t.yaml:2:13: resources.zzzz:",
                "known here: cpus, cpu_millis, memory, memory_bytes, gpus"},
        BadFile{"Misplaced", "run: x\ncpus: 2", "t.yaml:2:1: cpus: no such field",
                "resources: {cpus: 4}"},
        BadFile{"NameThatPeopleTryMisspelt", "run: x\nenviroment: {A: b}",
                "t.yaml:2:1: enviroment: no such field; write env", ""},
        BadFile{"NameOfKubernetes", "run: x\nkubernetes: {priorityClassName: a}",
                "t.yaml:2:14: kubernetes.priorityClassName: no such field",
                "did you mean \"priority_class\"?"},
        BadFile{"MergeKey", "run: x\n<<: {name: a}", "t.yaml:2:1: <<: no such field",
                "merge keys are not read"},
        BadFile{"NotASize", "run: x\nresources:\n  memory: 16Q",
                "t.yaml:3:11: resources.memory: \"16Q\" is not", "16Gi"},
        BadFile{"NotADuration", "run: x\ntime: soon",
                "t.yaml:2:7: time: \"soon\" is not a duration", "1h30m"},
        BadFile{"NotADurationInside", "run: x\nretry:\n  backoff: soon",
                "t.yaml:3:12: retry.backoff: \"soon\" is not a duration", "1h30m"},
        BadFile{"NotCpus", "run: x\nresources: {cpus: four}",
                "t.yaml:2:19: resources.cpus: \"four\"", "0.5"},
        BadFile{"NotGpus", "run: x\nresources: {gpus: 'H100:many'}",
                "t.yaml:2:19: resources.gpus:", "H100:8"},
        BadFile{"OneGpuAndAPart", "run: x\nresources: {gpus: 'H100:1.5'}",
                "t.yaml:2:19: resources.gpus: \"H100:1.5\" is neither a share of one GPU nor",
                "use 0.001 to 0.999 or a whole number"},
        BadFile{"NotANumber", "run: x\nnodes: several",
                "t.yaml:2:8: nodes: expected a whole number", "\"several\""},
        BadFile{"NumberOutOfRange", "run: x\nnodes: -1",
                "t.yaml:2:8: nodes: expected a whole number from 1 to 10000", "\"-1\""},
        BadFile{"NoNodes", "run: x\nnodes: 0",
                "t.yaml:2:8: nodes: expected a whole number from 1 to 10000", "\"0\""},
        BadFile{"NoRuns", "run: x\nretry: {max_runs: 0}",
                "t.yaml:2:19: retry.max_runs: expected a whole number from 1 to 100", "\"0\""},
        BadFile{"NoCores", "run: x\nresources: {cpus: 0}", "t.yaml:2:19: resources.cpus: \"0\"",
                "0.5"},
        BadFile{"NumberWithRest", "run: x\nnodes: 2x", "t.yaml:2:8: nodes:", "\"2x\""},
        BadFile{"NotATruth", "run: x\nslurm: {exclusive: yes}",
                "t.yaml:2:20: slurm.exclusive:", "true or false"},
        BadFile{"NotOneOf", "run: x\nkubernetes: {gang: panic}",
                "t.yaml:2:20: kubernetes.gang: \"panic\" is not one of", "volcano, pod_group"},
        BadFile{"MappingForText", "run: x\nname: {a: b}",
                "t.yaml:2:7: name: expected a text, found a mapping", ""},
        BadFile{"NothingForText",
                "run: x\nenv:\n  A:", "t.yaml:3:", "write \"\" for an empty text"},
        BadFile{"TextForMapping", "run: x\nresources: many",
                "t.yaml:2:12: resources: expected a mapping", "\"many\""},
        BadFile{"TextForCommand", "command: python train.py",
                "t.yaml:1:10: command: expected a list", "a shell script goes under run"},
        BadFile{"MappingInCommand", "command: [a, {b: c}]",
                "t.yaml:1:14: command[1]: expected a text", ""},
        BadFile{"Twice", "run: x\nname: a\nname: b", "t.yaml:3:1: name: is given twice", ""},
        BadFile{"TwoNamesOfOne", "run: x\ntime: 1h\ntime_limit: 2h",
                "t.yaml:3:1: time_limit: means the same as \"time\"", ""},
        BadFile{"RunAndCommand", "run: x\ncommand: [y]",
                "t.yaml:2:1: command: means the same as \"run\"", ""},
        BadFile{"ClusterTwoWays", "run: x\nplacement: {clusters: [a]}\ncluster: b",
                "t.yaml:3:10: cluster:", "keep one"},
        BadFile{"ListAtTheTop", "- run: x", "t.yaml:1:1: expected a mapping", "a list"},
        BadFile{
            "NoCommand", "name: a",
            "t.yaml:1:1: command: is missing; in a job file give run (a script) or command (words)",
            ""},
        // A value that the contract refuses is shown at its place too.
        BadFile{"BadEnvName", "run: x\nenv:\n  A-B: 1", "t.yaml:3:8: env[\"A-B\"]:", "[A-Za-z_]"},
        BadFile{"BadPriority", "run: x\npriority: 5000",
                "t.yaml:2:11: priority: 5000 is out of range", "1000"},
        BadFile{"FilesBesideTheClustersDirectory",
                "run: x\ntime: 1h\nworkdir: /data\nfile_mounts: {a: b}",
                "t.yaml:3:10: workdir:", "is a directory of the cluster"},
        BadFile{"FileMountAtAPlaceOfTheCluster", "run: x\ntime: 1h\nfile_mounts: {/a: b}",
                "t.yaml:3:19: file_mounts./a:", "./a"},
        BadFile{"FileMountOfTheClustersData", "run: x\ntime: 1h\nfile_mounts: {a: 'lustre:///b'}",
                "t.yaml:3:18: file_mounts.a:", "inputs"},
        BadFile{"Array", "run: x\narray: {size: 3}", "t.yaml:2:8: array: Muster has no array yet",
                "submit a job for each task"},
        BadFile{"DependsOnAName", "run: x\ndepends_on: prep", "t.yaml:2:13: depends_on: ",
                "\"prep\" is neither the number of a job nor the name of a document before"},
        BadFile{"DependsOnNothing", "run: x\ndepends_on: [{outcome: ended}]",
                "t.yaml:2:14: depends_on[0]: ", "names no job"},
        BadFile{"DependsOnAJobTwice", "run: x\ndepends_on: [12, {job: 12}]",
                "t.yaml:2:24: depends_on[1].job: ", "12 is there twice"},
        BadFile{"DependsOnAnOtherEnd", "run: x\ndepends_on: {job: 12, outcome: good}",
                "t.yaml:2:32: depends_on.outcome: ", "not one of succeeded, failed, ended"},
        BadFile{"Dependencies", "run: x\ndependencies: [12]",
                "t.yaml:2:1: dependencies: ", "write depends_on"},
        BadFile{"SecretsVariable", "run: x\ntime: 1h\nsecrets: {1A: hf}",
                "t.yaml:3:15: secrets.1A: ", "not a variable's name"},
        BadFile{"SecretsName", "run: x\ntime: 1h\nsecrets: {A: a/b}",
                "t.yaml:3:14: secrets.A: ", "is not a secret's name"},
        BadFile{"SecretsFile", "run: x\ntime: 1h\nsecrets: {A: {path: b}}",
                "t.yaml:3:15: secrets.A.path: no such field", "file"},
        BadFile{"Choice", "run: x\nkubernetes: {gang: MOVE}",
                "t.yaml:2:20: kubernetes.gang: \"MOVE\" is not one of volcano", ""},
        BadFile{"TooLongAWait", "run: x\nretry: {backoff: 2h}",
                "t.yaml:2:18: retry.backoff: 2h is out of range", "use 0s to 1h"},
        BadFile{"BadCluster", "run: x\nplacement:\n  clusters: [ok, Not OK]",
                "t.yaml:3:18: placement.clusters[1]:", ""},
        // yaml-cpp has an empty value where the next one begins.
        BadFile{"EmptyValue", "run: x\nname:  # none\n\n# c\nnodes: 1",
                "t.yaml:2:1: name: expected a text, found nothing", ""},
        BadFile{"EmptyValueAtTheEnd", "run: x\nresources:\n  cpus:\n\n",
                "t.yaml:3:3: resources.cpus: expected a text, found nothing", ""},
        BadFile{"EmptyValueThatIsWritten", "run: x\nname: ~\nnodes: 1", "t.yaml:2:7: name:", ""},
        BadFile{"EmptyValueOfAnEntry", "run: x\nenv:\n  A:\n\n  B: 1",
                "t.yaml:3:3: env.A: expected a text, found nothing", ""},
        BadFile{"EmptyItem", "command:\n- a\n-  # none\n\n- b", "t.yaml:3:1: command[1]: expected",
                ""},
        BadFile{"EmptyItemAtTheEnd", "command:\n  - a\n  -\n\n", "t.yaml:3:3: command[1]:", ""},
        BadFile{"EmptyItemThatIsWritten", "command: [a, ~]", "t.yaml:1:14: command[1]:", ""},
        BadFile{"EmptyScript", "run: ''", "t.yaml:1:6: run: is empty", ""},
        BadFile{"EmptyCommand", "command: []", "t.yaml:1:10: command:", ""},
        BadFile{"NotYaml", "command: [unclosed\n", "t.yaml:2:1: not valid YAML", ""},
        BadFile{"Tabs", "resources:\n\tcpus: 1", "t.yaml:2:6: not valid YAML",
                "indented with a tab"},
        BadFile{"NotUtf8", "run: x\nname: \"\xff\"", "t.yaml:2: is not UTF-8 text (byte 0xff)", ""},
        BadFile{"Empty", "", "t.yaml: holds no job", "run: echo hello"},
        BadFile{"OnlyComments", "# nothing\n---\n", "t.yaml: holds no job", ""}),
    [](const auto& info) { return info.param.name; });

TEST(JobFile, ReadsEveryFieldOfTheKubernetesSection) {
  const auto specs = ParseJobFile("t.yaml", R"(run: echo hi
kubernetes:
  namespace: lab
  queue: team
  scheduler_name: kai
  priority_class: high
  runtime_class: nvidia
  service_account: trainer
  node_selector: {zone: a}
  tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
  required_nodes:
  - {key: rack, operator: In, values: [r1, r2]}
  preferred_nodes:
  - {weight: 5, requirement: {key: fast, operator: Exists}}
  spread: required
  volumes:
  - {mount_path: /data, claim: data, sub_path: sets, read_only: true}
  - {mount_path: /tmp/fast, empty_directory: {in_memory: true, size_bytes: 2Gi}}
  security_context: {run_as_user: 1000, run_as_non_root: true, drop_capabilities: [ALL]}
  labels: {team: vision}
  annotations: {note: hi}
  termination_grace: 90s
  image_pull_secrets: [pull]
  shm_bytes: 16Gi
  host_network: true
  time_to_live: 2h
)");
  ASSERT_TRUE(specs.ok()) << specs.status();
  const v1::JobSpec expected = SpecFrom(R"(
    command { script: "echo hi" }
    kubernetes {
      namespace: "lab" queue: "team" scheduler_name: "kai" priority_class: "high"
      runtime_class: "nvidia" service_account: "trainer"
      node_selector { key: "zone" value: "a" }
      tolerations { key: "nvidia.com/gpu" operator: "Exists" effect: "NoSchedule" }
      required_nodes { key: "rack" operator: "In" values: "r1" values: "r2" }
      preferred_nodes { weight: 5 requirement { key: "fast" operator: "Exists" } }
      spread: KUBERNETES_SPREAD_REQUIRED
      volumes { mount_path: "/data" claim: "data" sub_path: "sets" read_only: true }
      volumes { mount_path: "/tmp/fast" empty_directory { in_memory: true size_bytes: 2147483648 } }
      security_context { run_as_user: 1000 run_as_non_root: true drop_capabilities: "ALL" }
      labels { key: "team" value: "vision" }
      annotations { key: "note" value: "hi" }
      termination_grace { seconds: 90 }
      image_pull_secrets: "pull"
      shm_bytes: 17179869184
      host_network: true
      time_to_live { seconds: 7200 }
    })");
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(specs->specs.front(), expected))
      << specs->specs.front().DebugString();
}

TEST(JobFile, NamesLineAndFieldOfWhatIsWrongInTheKubernetesSection) {
  EXPECT_THAT(Parse("run: x\nkubernetes:\n  namespace: Lab\n"),
              StartsWith("t.yaml:3:14: kubernetes.namespace: \"Lab\" is not a namespace"));
  EXPECT_THAT(Parse("run: x\nkubernetes:\n  shm_bytes: lots\n"),
              StartsWith("t.yaml:3:14: kubernetes.shm_bytes: "));
  EXPECT_THAT(Parse("run: x\nkubernetes: {gang: slurm}\n"),
              HasSubstr("kubernetes.gang: \"slurm\" is not one of volcano, pod_group"));
  EXPECT_THAT(Parse("run: x\nkubernetes: {volumes: [{mount_path: /a, claim: b, secret: c}]}\n"),
              HasSubstr("kubernetes.volumes[0].secret: claim is given too; keep one of them"));
  EXPECT_THAT(Parse("run: x\nkubernetes:\n  volumes:\n  - {mount_path: a, claim: b}\n"),
              StartsWith("t.yaml:4:18: kubernetes.volumes[0].mount_path: \"a\""));
  EXPECT_THAT(Parse("run: x\nkubernetes: {manifest: {}}\n"),
              HasSubstr("t.yaml:2:14: kubernetes.manifest: "));
}

TEST(JobFile, NamesEveryProblemAtOnce) {
  const std::string message = Parse("nodes: x\nnmae: y\ntime: z\n");
  EXPECT_THAT(message, HasSubstr("t.yaml:1:8: nodes:"));
  EXPECT_THAT(message, HasSubstr("t.yaml:2:1: nmae:"));
  EXPECT_THAT(message, HasSubstr("t.yaml:3:7: time:"));
}

TEST(JobFile, LeavesOutProblemsBeyondTheLimit) {
  std::string yaml = "run: x\n";
  for (int i = 0; i < 30; ++i) yaml += fmt::format("bad{}: 1\n", i);
  const std::string message = Parse(yaml);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), static_cast<int>(kMaxYamlProblems));
  EXPECT_THAT(message, HasSubstr("... and 10 more"));
}

TEST(JobFile, OfAFileThatIsNoJobFileTheFieldsAreListedOnceAndNamesAreCut) {
  const std::string long_name(100, 'x');
  const std::string message = Parse("zzzzz1: 1\nzzzzz2: 2\n" + long_name + ": 3\n");
  EXPECT_THAT(message, HasSubstr("zzzzz2: no such field"));
  EXPECT_EQ(message.find("known here"), message.rfind("known here"));
  EXPECT_THAT(message, HasSubstr("known here"));
  EXPECT_THAT(message, HasSubstr(std::string(40, 'x') + "...: no such field"));
  EXPECT_THAT(message, Not(HasSubstr(long_name)));
}

TEST(JobFile, ListsNoFieldsThatAreNotBuilt) {
  const std::string message = Parse("zzzzz1: 1\n");
  EXPECT_THAT(message, HasSubstr("known here"));
  EXPECT_THAT(message, Not(HasSubstr("dependencies")));
}

TEST(JobFile, ADocumentDependsOnEarlierOnesByTheirNames) {
  const auto jobs =
      ParseJobFile("t.yaml",
                   "name: prep\nrun: a\n---\nname: train\nrun: b\ndepends_on: prep\n---\nrun: c\n"
                   "depends_on: [{job: train, outcome: ended}, 7]\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->specs[1].depends_on(0).request(), 1u);
  EXPECT_EQ(jobs->specs[2].depends_on(0).request(), 2u);
  EXPECT_EQ(jobs->specs[2].depends_on(0).outcome(), v1::JOB_OUTCOME_ENDED);
  EXPECT_EQ(jobs->specs[2].depends_on(1).job_id(), 7u);
  EXPECT_THAT(Parse("run: a\ndepends_on: b\n---\nname: b\nrun: b\n"),
              HasSubstr("t.yaml:2:13: depends_on: \"b\" is neither"))
      << "it comes later";
  EXPECT_THAT(Parse("name: a\nrun: a\n---\nname: a\nrun: b\n---\nrun: c\ndepends_on: a\n"),
              HasSubstr("is the name of several documents"));
}

TEST(JobFile, OfAWholeJobOnlyItsSpecIsAskedFor) {
  const std::string message = Parse("id: 42\nstate: FAILED\nspec: {run: x}\n");
  EXPECT_THAT(message, HasSubstr("spec: this is a whole job; submit what is under spec"));
  EXPECT_THAT(message, Not(HasSubstr("state")));
}

TEST(JobFile, HoldsOneJobForEachDocument) {
  const auto specs = ParseJobFile("t.yaml", "run: a\n---\nrun: b\n---\n# nothing\n---\nrun: c\n");
  ASSERT_TRUE(specs.ok()) << specs.status();
  ASSERT_EQ(specs->specs.size(), 3u);
  EXPECT_EQ(specs->specs[2].command().script(), "c");
}

TEST(JobFile, NamesTheLineInALaterDocument) {
  EXPECT_THAT(Parse("run: a\n---\nrun: b\nnodes: x\n"), StartsWith("t.yaml:4:8: nodes:"));
}

TEST(JobFile, HasABoundOnItsJobs) {
  std::string yaml;
  for (size_t i = 0; i <= kMaxJobsInFile; ++i) yaml += "---\nrun: a\n";
  EXPECT_THAT(Parse(yaml), HasSubstr("more than 1000 jobs"));
}

TEST(JobFile, HasABoundOnItsSize) {
  EXPECT_THAT(Parse("run: " + std::string(kMaxJobFileBytes, 'x')),
              HasSubstr("the limit is 4194304"));
}

TEST(JobFile, SurvivesAliasesOfAliases) {
  std::string yaml = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    yaml += fmt::format("{0}: &{0} [*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1},*{1}]\n", c,
                        static_cast<char>(c - 1));
  }
  EXPECT_THAT(Parse(yaml + "command: *j\n"),
              HasSubstr("command[0]: expected a text, found a list"));
}

TEST(JobFile, SurvivesDeepNesting) {
  EXPECT_THAT(Parse("run: " + std::string(100'000, '[')), HasSubstr("t.yaml:"));
  EXPECT_THAT(Parse("run: " + std::string(100'000, '{')), HasSubstr("t.yaml:"));
}

TEST(JobFile, SurvivesAnAliasOfItself) {
  EXPECT_THAT(Parse("command: &a [*a]\n"), HasSubstr("t.yaml:1:"));
  EXPECT_THAT(Parse("resources: &a\n  cpus: *a\n"), HasSubstr("t.yaml:"));
}

// The result, whatever the bytes are, is a spec or a message that names the file.
TEST(JobFile, SurvivesDamage) {
  const std::string good =
      "name: a\nresources: {cpus: 4, memory: 16Gi, gpus: 'H100:8'}\ntime: 4h\nenv:\n  A: &x 1\n  "
      "B: *x\n"
      "command: [a, \"b\\n\", 'c']\nslurm: {exclusive: true}\n---\nrun: |\n  echo\n  echo\nlabels: "
      "{? a : b}\n";
  std::mt19937 random(20260301);
  for (int round = 0; round < 3000; ++round) {
    std::string yaml = good;
    for (unsigned change = 0; change < 1 + random() % 4; ++change) {
      const size_t at = random() % yaml.size();
      switch (random() % 3) {
        case 0:
          yaml[at] = static_cast<char>(random());
          break;
        case 1:
          yaml.erase(at, 1 + random() % 8);
          break;
        default:
          yaml.insert(at, 1, ":{}[]&*!|>'\"%@`#-? \n\t,"[random() % 22]);
      }
    }
    const auto specs = ParseJobFile("t.yaml", yaml);
    if (specs.ok()) continue;
    EXPECT_THAT(StatusText(specs.status()), StartsWith("t.yaml:")) << yaml;
  }
}

TEST(JobFile, NamesAFileThatCannotBeRead) {
  const auto missing = ReadJobFile("/nonexistent/job.yaml");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(StatusText(missing.status()), HasSubstr("/nonexistent/job.yaml"));
  EXPECT_THAT(StatusText(ReadJobFile("/").status()), HasSubstr("cannot read /"));
}

}  // namespace
}  // namespace muster::client
