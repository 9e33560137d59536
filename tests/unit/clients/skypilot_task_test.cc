// Tests files of SkyPilot tasks: every form but those of `resources`, and the errors for impossible
// ones.
#include <fmt/format.h>

#include <string>

#include "tests/unit/clients/skypilot_fixture.h"

namespace muster::client::skypilot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#define BASH "<bash>"
#define RUN_X "nodes: 1 command { script: '" BASH "x' } "

class SkyPilotFile : public ::testing::TestWithParam<Row> {};

TEST_P(SkyPilotFile, IsReadAsSkyPilotReadsIt) { ExpectRow(GetParam(), GetParam().yaml, ""); }

INSTANTIATE_TEST_SUITE_P(
    Forms, SkyPilotFile,
    ::testing::Values(
        Row{"Twice", "num_nodes: 1\nrun: x\nnum_nodes: 2",
            "t.yaml:3:1: \"num_nodes\" is given twice, first in line 1; keep one of them"},
        Row{"TwiceInQuotes", "envs:\n  A: 1\n  'A': 2",
            "t.yaml:3:3: \"A\" is given twice, first in line 2"},
        Row{"TwiceInAFieldThatMeansNothing", "num_nodes: 1\nrun: x\nservice: {port: 1, port: 2}",
            "t.yaml:3:20: \"port\" is given twice, first in line 3"},
        Row{"Tab", "num_nodes: 1\n\trun: x", "t.yaml:2:1: not valid YAML|indented with a tab"},
        Row{"NotUtf8", "num_nodes: 1\nrun: \"\xff\"", "t.yaml:2: is not UTF-8"},
        Row{"ByteOrderMark", "\xef\xbb\xbfnum_nodes: 1\nrun: x", RUN_X},
        Row{"PythonTag", "num_nodes: 1\nrun: !!python/name:os.system x",
            "t.yaml:2:6: the tag |python"},
        Row{"Anchors", "num_nodes: 1\nrun: &r x\nsetup: *r", RUN_X "setup: '" BASH "x'"},
        Row{"MergeKey",
            "num_nodes: 1\nservice: &e {c: c, a: b}\nrun: x\nresources: {labels: {<<: *e, b: b, a: "
            "a}}",
            RUN_X "labels { key: 'a' value: 'a' } labels { key: 'b' value: 'b' } labels { key: 'c' "
                  "value: 'c' }"},
        Row{"MergeKeyWithList",
            "num_nodes: 1\nrun: x\nservice: [&a {A: 1}, &b {A: 2, B: 2}]\nenvs: {<<: [*a, *b]}",
            RUN_X "env { key: 'A' value: '1' } env { key: 'B' value: '2' }"},
        Row{"MergeKeyOfAText", "num_nodes: 1\nrun: x\nenvs: {<<: a}",
            "t.yaml:3:12: envs.<<: expected a mapping"},
        Row{"MergeKeyOfItself", "num_nodes: 1\nrun: x\nenvs: &e {<<: *e}", RUN_X},
        Row{"AnchorHolder", "x-base: &b {A: 1}\nrun: x\nenvs: *b",
            "t.yaml:1:1: x-base: no such field"},
        Row{"UnknownField", "num_nodes: 1\nruns: x",
            "t.yaml:2:1: runs: no such field; did you mean \"run\"?"},
        Row{"TheOnlyTellingFieldMisspelt", "num_node: 2\nrun: x",
            "t.yaml:1:1: num_node: no such field; did you mean \"num_nodes\"?"},
        Row{"TheOnlyTellingFieldMisspeltInside", "run: x\nresources: {acelerators: H100:1}",
            "t.yaml:2:13: resources.acelerators: no such field; did you mean \"accelerators\"?"},
        Row{"MisspeltNameThatPeopleTry", "num_nodes: 1\nrun: x\nenviroment: {A: b}",
            "t.yaml:3:1: enviroment: no such field; write envs"},
        Row{"UnknownFieldWithoutValue",
            "num_nodes: 1\nrun: x\ncolour:", "t.yaml:3:1: colour: no such field"},
        Row{"AtTheWrongPlace", "num_nodes: 1\nrun: x\nautostop: true",
            "t.yaml:3:1: autostop: no such field; write it under resources"},
        Row{"DollarAndBraceInAFlow", "{num_nodes: 1, name: b-${A}}", "t.yaml:1:|not valid YAML"},
        Row{"Nulls",
            "num_nodes:\nname:\nsetup:\nworkdir:\nresources:\nfile_mounts:\nsecrets:\nrun: x",
            "command { script: '" BASH "x' }"},
        Row{"Name", "num_nodes: 1\nname: a.b_c-1\nrun: x", RUN_X "name: 'a.b_c-1'"},
        Row{"NameIsANumber", "num_nodes: 1\nname: 123\nrun: x",
            "t.yaml:2:7: name: expected a text, and \"123\" without quotes is a number"},
        Row{"NameIsTrue", "num_nodes: 1\nname: true\nrun: x", "t.yaml:2:7: name: |True or False"},
        Row{"NameWithBlank", "num_nodes: 1\nname: a b\nrun: x",
            "t.yaml:2:7: name: \"a b\" cannot name a task"},
        Row{"NameWithThreeJoints", "num_nodes: 1\nname: a...b\nrun: x",
            "t.yaml:2:7: name: |cannot name"},
        Row{"NameEndsInJoint", "num_nodes: 1\nname: a-\nrun: x", "t.yaml:2:7: name: |cannot name"},
        Row{"NeitherRunNorSetup", "num_nodes: 1\nrun:", "t.yaml:1:1: has neither run nor setup"},
        Row{"OnlyEmptyRun", "num_nodes: 1\nrun: ''", "t.yaml:1:1: has neither run nor setup"},
        Row{"OnlySetup", "num_nodes: 1\nsetup: x",
            "nodes: 1 setup: '" BASH "x' command { argv { args: 'true' } }"},
        Row{"RunIsAList", "num_nodes: 1\nrun: [echo 1]",
            "t.yaml:2:6: run: expected a text, found a list"},
        Row{"RunIsTrue", "num_nodes: 1\nrun: true", "t.yaml:2:6: run: |write it in quotes"},
        Row{"RunKeepsItsFirstLine", "num_nodes: 1\nrun: |\n  #!/bin/sh\n  x\n",
            "nodes: 1 command { script: '" BASH "#!/bin/sh\\nx\\n' }"},
        Row{"LineBreaksOfDos", "num_nodes: 1\r\nrun: |\r\n  a\r\n  b\r\n",
            "nodes: 1 command { script: '" BASH "a\\nb\\n' }"},
        Row{"EscapedLineBreaksStay", "num_nodes: 1\nrun: \"a\\r\\n\"",
            "nodes: 1 command { script: '" BASH "a\\r\\n' }"},
        Row{"Nodes", "num_nodes: 2\nrun: x", "nodes: 2 command { script: '" BASH "x' }"},
        Row{"NodesInQuotes", "num_nodes: '2'\nrun: x",
            "t.yaml:1:12: num_nodes: expected a whole number"},
        Row{"NodesInPart", "num_nodes: 1.5\nrun: x", "t.yaml:1:12: num_nodes: |found \"1.5\""},
        Row{"NodesAreTrue", "num_nodes: true\nrun: x", "t.yaml:1:12: num_nodes: |found \"true\""},
        Row{"NodesOfAVariable", "envs: {N: 2}\nnum_nodes: ${N}\nrun: x", "t.yaml:2:12: num_nodes:"},
        Row{"NoNodes", "num_nodes: 0\nrun: x", "t.yaml:1:12: num_nodes: |from 1 to 10000"},
        Row{"NodesAsFloat", "num_nodes: 2.0\nrun: x", "t.yaml:1:12: num_nodes:"},
        // Fields that mean nothing here have no effect, whatever they say.
        Row{"Service", "num_nodes: 1\nrun: x\nservice: /health", RUN_X},
        Row{"Pool", "num_nodes: 1\nrun: x\npool: {workers: 2}", RUN_X},
        Row{"Config", "num_nodes: 1\nrun: x\nconfig: {docker: {run_options: a}}", RUN_X}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Documents, SkyPilotFile,
    ::testing::Values(
        Row{"EmptyOnesAreSkipped", "---\n---\nnum_nodes: 1\nrun: x\n---\n# nothing\n", RUN_X},
        Row{"HeaderAndTask", "name: pipe\n---\nrun: x\nnum_nodes: 1", RUN_X "name: 'pipe'"},
        Row{"HeaderWithExecution",
            "name: pipe\nexecution: serial\n---\nname: t\nrun: x\nnum_nodes: 1", RUN_X "name: 't'"},
        Row{"Chain", "name: pipe\n---\nrun: a\n---\nrun: b",
            "name: 'pipe' command { script: '" BASH "a' } --- name: 'pipe' command { script: '" BASH
            "b' } depends_on { request: 1 outcome: JOB_OUTCOME_SUCCEEDED }"},
        Row{"ChainWithoutHeader", "num_nodes: 1\nrun: x\n---\nrun: b\n---\nrun: c",
            RUN_X " --- command { script: '" BASH
                  "b' } depends_on { request: 1 outcome: JOB_OUTCOME_SUCCEEDED } --- command { "
                  "script: '" BASH "c' } depends_on { request: 2 outcome: JOB_OUTCOME_SUCCEEDED }"},
        Row{"Group", "name: g\nexecution: parallel\n---\nname: a\nrun: x\n---\nname: b\nrun: y",
            "name: 'a' command { script: '" BASH "x' } --- name: 'b' command { script: '" BASH
            "y' }"},
        Row{"GroupWithoutName", "execution: parallel\n---\nname: a\nrun: x",
            "t.yaml:1:1: a group of tasks needs a name"},
        Row{"TaskOfAGroupWithoutName", "name: g\nexecution: parallel\n---\nrun: x",
            "t.yaml:4:1: a task of a group needs a name"},
        Row{"GroupWithPrimaryTasks",
            "name: g\nexecution: parallel\nprimary_tasks: [a]\n---\nname: a\nrun: x",
            "t.yaml:3:16: primary_tasks: jobs do not end each other here|leads: true"},
        Row{"UnknownExecution", "name: g\nexecution: later\n---\nrun: x",
            "t.yaml:2:12: execution: \"later\" is neither serial nor parallel"},
        Row{"HeaderAlone", "name: g\nexecution: serial", "t.yaml:1:1: is followed by no task"}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(
    Variables, SkyPilotFile,
    ::testing::Values(
        Row{"NullSection", "num_nodes: 1\nrun: x\nenvs:", "t.yaml:3:|envs: is empty; write {}"},
        Row{"EmptySection", "num_nodes: 1\nrun: x\nenvs: {}", RUN_X},
        Row{"SectionIsAList", "num_nodes: 1\nrun: x\nenvs: [A]",
            "t.yaml:3:7: envs: expected a mapping"},
        Row{"Text", "num_nodes: 1\nrun: x\nenvs: {A: a b}", RUN_X "env { key: 'A' value: 'a b' }"},
        Row{"Number", "num_nodes: 1\nrun: x\nenvs: {A: 010}", RUN_X "env { key: 'A' value: '8' }"},
        Row{"List", "num_nodes: 1\nrun: x\nenvs: {A: [1, a]}",
            RUN_X "env { key: 'A' value: \"[1, 'a']\" }"},
        Row{"Mapping", "num_nodes: 1\nrun: x\nenvs: {A: {b: c}}", "t.yaml:3:11: envs.A: expected"},
        Row{"Null", "num_nodes: 1\nrun: x\nenvs:\n  A:",
            "t.yaml:4:|envs.A: has no value; give it one with --env A=VALUE, or write \"\""},
        Row{"Tilde", "num_nodes: 1\nrun: x\nenvs: {A: ~}", "t.yaml:3:|has no value"},
        Row{"EmptyText", "num_nodes: 1\nrun: x\nenvs: {A: ''}", RUN_X "env { key: 'A' value: '' }"},
        Row{"KeyIsTrue", "num_nodes: 1\nrun: x\nenvs: {ON: 1}",
            "t.yaml:3:8: envs: the name ON without quotes is True in YAML"},
        Row{"KeyInQuotes", "num_nodes: 1\nrun: x\nenvs: {'ON': 1}",
            RUN_X "env { key: 'ON' value: '1' }"},
        Row{"KeyIsNoName", "num_nodes: 1\nrun: x\nenvs: {A-B: 1}",
            "t.yaml:3:13: envs.A-B: \"A-B\" cannot name a variable"},
        Row{"Mustersown", "num_nodes: 1\nrun: x\nenvs: {MUSTER_X: 1}",
            "t.yaml:3:18: envs.MUSTER_X: "},
        Row{"RegistryInPart", "num_nodes: 1\nrun: x\nenvs: {SKYPILOT_DOCKER_SERVER: a}",
            "t.yaml:3:7: envs: |SKYPILOT_DOCKER_USERNAME and SKYPILOT_DOCKER_PASSWORD are missing"},
        Row{"RegistryIsTheClusters",
            "num_nodes: 1\nrun: x\nenvs: {SKYPILOT_DOCKER_SERVER: a, SKYPILOT_DOCKER_USERNAME: b, "
            "SKYPILOT_DOCKER_PASSWORD: c}",
            RUN_X},
        Row{"SecretByName", "num_nodes: 1\nrun: x\nsecrets: {T: }",
            RUN_X "secrets { variable: 'T' name: 'T' }"},
        Row{"SecretInTheFile", "num_nodes: 1\nrun: x\nsecrets: {T: hush}",
            RUN_X "secrets { variable: 'T' name: 'for-one-job' }"},
        Row{"SecretWithoutABit", "num_nodes: 1\nrun: x\nsecrets: {T: ''}",
            RUN_X "env { key: 'T' value: '' }"},
        Row{"SecretWinsOverAVariable", "num_nodes: 1\nrun: x\nenvs: {T: a}\nsecrets: {T: hush}",
            RUN_X "secrets { variable: 'T' name: 'for-one-job' }"},
        Row{"SecretsOfTheServer", "num_nodes: 1\nrun: x\nsecrets: ['secrets:personal.T']",
            RUN_X "secrets { variable: 'T' name: 'T' }"},
        Row{"SecretsInAListAreReferences", "num_nodes: 1\nrun: x\nsecrets: [T]",
            "t.yaml:3:11: secrets[0]: \"T\" is not secrets:NAME"},
        Row{"SecretIsNoName", "num_nodes: 1\nrun: x\nsecrets: {A-B: 1}",
            "t.yaml:3:16: secrets.A-B: \"A-B\" cannot name a variable"},
        Row{"RegistryAsSecrets",
            "num_nodes: 1\nrun: x\nsecrets: {SKYPILOT_DOCKER_SERVER: a, SKYPILOT_DOCKER_USERNAME: "
            "b, SKYPILOT_DOCKER_PASSWORD: c}",
            RUN_X},
        Row{"NotInRunNorName", "num_nodes: 1\nenvs: {A: b}\nrun: echo $A ${A}",
            "nodes: 1 env { key: 'A' value: 'b' } command { script: '" BASH "echo $A ${A}' }"}),
    [](const auto& info) { return NameOf(info); });

#define WITH_A "num_nodes: 1\nrun: x\nenvs: {A: one, B: $A}\n"
#define ENV_A "env { key: 'A' value: 'one' } env { key: 'B' value: '$A' } "

INSTANTIATE_TEST_SUITE_P(
    Files, SkyPilotFile,
    ::testing::Values(
        Row{"ShellsDefault", WITH_A "workdir: '/data/${A:-two}'",
            "t.yaml:4:10: workdir: ${A is not followed by a closing brace"},
        Row{"OpenBrace", WITH_A "workdir: '/data/${A'",
            "t.yaml:4:10: workdir: ${A is not followed"},
        Row{"EmptyWorkdir", "num_nodes: 1\nrun: x\nworkdir: ''", "t.yaml:3:10: workdir: is empty"},
        Row{"WorkdirFromGit", "num_nodes: 1\nrun: x\nworkdir: {url: https://example.org/a.git}",
            "t.yaml:3:10: workdir: Muster clones no repositories yet|git clone"},
        Row{"MountOfTheClustersData",
            WITH_A "file_mounts: {/d/$A: 'lustre:///data/${A}'}\nresources: {image_id: docker:i}",
            RUN_X ENV_A "inputs { uri: 'lustre:///data/one' path: '/d/one' } image: 'i'"},
        Row{"MountWhereTheDataIs", WITH_A "file_mounts: {/d/$A: 'lustre:///d/one'}",
            RUN_X ENV_A "inputs { uri: 'lustre:///d/one' }"},
        Row{"MountElsewhereWithoutAnImage", "run: x\nfile_mounts: {/e: 'lustre:///d'}",
            "t.yaml:2:19: file_mounts./e: without a container the data is at /d alone|image_id"},
        Row{"MountElsewhereWithAnImageInEachAlternative",
            "run: x\nfile_mounts: {/e: 'lustre:///d'}\n"
            "resources: {any_of: [{image_id: docker:i}, {image_id: docker:j}]}",
            "command { script: '" BASH "x' } inputs { uri: 'lustre:///d' path: '/e' } image: 'i'"},
        Row{"MountElsewhereWithAnImageInTheFirstAlternativeAlone",
            "run: x\nfile_mounts: {/e: 'lustre:///d'}\n"
            "resources: {ordered: [{image_id: docker:i}, {infra: ssh/boxes}]}",
            "t.yaml:2:19: file_mounts./e: without a container|in each alternative"},
        Row{"MountOfALocalFileAtAPlaceOfTheCluster", "run: x\nfile_mounts: {/d/e: ./data}",
            "t.yaml:2:21: file_mounts./d/e: \"/d/e\" is a place of the cluster|such as ./e"},
        Row{"MountOfALocalFileAtHome", "run: x\nfile_mounts: {~/.aws: ~/.aws}",
            "t.yaml:2:23: file_mounts.~/.aws: |such as ./.aws"},
        Row{"MountAbove", "run: x\nfile_mounts: {a/../../b: ./data}",
            "t.yaml:2:26: file_mounts.a/../../b: |has the part"},
        Row{"MountOfABucket", "run: x\nfile_mounts: {/d: {name: b}}",
            "t.yaml:2:19: file_mounts./d: Muster mounts no buckets"},
        Row{"MountOfACloudsUri", "run: x\nfile_mounts: {/d: 's3://b'}",
            "t.yaml:2:19: file_mounts./d: Muster fetches nothing from \"s3://b\"; copy the data to "
            "the cluster and write lustre:///PATH, or fetch it in setup"},
        Row{"MountOfADownload", "run: x\nfile_mounts: {d: 'https://a.org/b'}",
            "t.yaml:2:18: file_mounts.d: Muster fetches nothing from \"https://a.org/b\"|setup"},
        Row{"MountByASchemeInCapitals", "run: x\nfile_mounts: {/d: 'LUSTRE:///d'}",
            "command { script: '" BASH "x' } inputs { uri: 'LUSTRE:///d' }"},
        Row{"MountOfThisMachinesUri", "run: x\nfile_mounts: {/d: 'file:///b'}",
            "t.yaml:2:19: file_mounts./d: "},
        Row{"MountOfNothing", "run: x\nfile_mounts: {/d: }",
            "t.yaml:2:|file_mounts./d: expected a text"},
        Row{"MountAtARelativePlace",
            "run: x\nfile_mounts: {d: 'lustre:///b'}\nresources: {image_id: docker:i}",
            "t.yaml:2:18: file_mounts.d: "},
        Row{"Volumes", "run: x\nvolumes: {/d: claim}",
            "t.yaml:2:10: volumes: Muster has no volumes|kubernetes:"},
        Row{"NoVolumes", "run: x\nvolumes: {}", "command { script: '" BASH "x' }"}),
    [](const auto& info) { return NameOf(info); });

TEST(SkyPilotWorkdir, IsThisMachinesWithItsVariables) {
  const std::pair<std::string, std::string> cases[] = {
      {"/data/a", "/data/a"},
      {"./project", "./project"},
      {"~/project", "~/project"},
      {"/data/$A", "/data/one"},
      {"/data/${A}x", "/data/onex"},
      {"/data/$Ax", "/data/$Ax"},
      {"/data/${C}$SKYPILOT_TASK_ID", "/data/${C}$SKYPILOT_TASK_ID"},
      {"/data/$B", "/data/$A"},
      {"/data/$$A", "/data/$one"},
      {"/data/a$", "/data/a$"},
      {"/$Q", "/a\"\\b"},
  };
  for (const auto& [written, source] : cases) {
    const auto jobs = ParseJobFile(
        "t.yaml", "num_nodes: 1\nrun: x\nenvs: {A: one, B: $A, Q: 'a\"\\b'}\nworkdir: " + written);
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->local_uploads.size(), 1u) << written;
    EXPECT_EQ(jobs->local_uploads[0].source, source);
    EXPECT_EQ(jobs->local_uploads[0].target, "");
    EXPECT_EQ(jobs->specs[0].working_directory(), "");
    EXPECT_EQ(jobs->specs[0].uploads(0).tree_sha256(), kUnreadTree);
    EXPECT_EQ(jobs->places.Find(0, "uploads[0].tree_sha256"), "t.yaml:4:10");
  }
}

TEST(SkyPilotFileMounts, OfThisMachineGoIntoTheWorkingDirectory) {
  const auto jobs =
      ParseJobFile("t.yaml",
                   "name: p\nexecution: parallel\n---\nname: a\nenvs: {E: x}\nrun: x\n---\n"
                   "name: b\nrun: x\nworkdir: .\nenvs: {D: data}\nfile_mounts:\n"
                   "  ./$D/: ~/$D\n  conf/a.json: $E.json\n  .: extra\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->local_uploads.size(), 4u);
  const std::pair<std::string, std::string> expected[] = {
      {".", ""},
      {"extra", ""},
      {"~/data", "data"},
      {"$E.json", "conf/a.json"}};  // E is the other task's
  for (int i = 0; i < 4; ++i) {
    const LocalUpload& upload = jobs->local_uploads[static_cast<size_t>(i)];
    EXPECT_EQ(upload.source, expected[i].first);
    EXPECT_EQ(upload.target, expected[i].second);
    EXPECT_EQ(upload.job, 1u);
    EXPECT_EQ(upload.upload, i);
  }
  EXPECT_EQ(jobs->specs[0].uploads_size(), 0);
  EXPECT_EQ(jobs->specs[1].uploads_size(), 4);
}

TEST(SkyPilotVariables, OfTheCommandLineWinAndFillWhatIsOpen) {
  const JobFileOptions options{.strict = false, .env = {{"A", "mine"}, {"B", "b"}, {"C", "c"}}};
  const auto jobs =
      ParseJobFile("t.yaml", "envs: {A: file, B: }\nrun: x\nworkdir: /$A/$B/$C", options);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->specs[0].env().at("A"), "mine");
  EXPECT_EQ(jobs->specs[0].env().at("B"), "b");
  EXPECT_EQ(jobs->local_uploads[0].source, "/mine/b/c");
}

TEST(SkyPilotNotesOfAFile, NameTheFieldsOfAllTasksOnce) {
  const auto jobs = ParseJobFile(
      "t.yaml",
      "name: g\nexecution: parallel\ntermination_delay: 5s\n---\nname: a\nrun: x\nservice: /\n---\n"
      "name: b\nrun: x\nservice: /\nconfig: {}\n");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(jobs->notes,
              ElementsAre("t.yaml: ignored, because it means nothing to Muster's clusters: "
                          "termination_delay, service, config (--strict refuses it)",
                          HasSubstr("the tasks of the group become jobs of their own")));
}

TEST(SkyPilotNotesOfAFile, AreNotThereIfAllIsHonoured) {
  const auto jobs = ParseJobFile(
      "t.yaml", "num_nodes: 2\nname: a\nrun: x\nsetup: y\nenvs: {A: b}\nresources: {cpus: 2+}");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(jobs->notes, IsEmpty());
}

TEST(SkyPilotFileBounds, HoldForAliasesOfLongTexts) {
  std::string yaml =
      "num_nodes: 1\nrun: x\nenvs:\n  A: &a " + std::string(100'000, 'x') + "\n  B: [";
  for (int i = 0; i < 100'000; ++i) yaml += "*a,";
  const auto jobs = ParseJobFile("t.yaml", yaml + "]\n");
  EXPECT_THAT(MessageOf(jobs.status()), HasSubstr("t.yaml:5:6: envs.B: is a list of more"));
}

TEST(SkyPilotFileBounds, HoldForMergesOfMerges) {
  std::string yaml = "num_nodes: 1\nrun: x\nservice:\n- &a0 {A: 1}\n";
  for (int i = 1; i < 20; ++i) yaml += fmt::format("- &a{} {{<<: *a{}}}\n", i, i - 1);
  const auto jobs = ParseJobFile("t.yaml", yaml + "envs: *a19\n");
  EXPECT_THAT(MessageOf(jobs.status()), HasSubstr("envs.<<: merges mappings too deeply"));
}

}  // namespace
}  // namespace muster::client::skypilot
